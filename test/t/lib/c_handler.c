/* A handler in C: returns the timer's own id, or does what its correlation id says. */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(c_handler);

Datum
c_handler(PG_FUNCTION_ARGS)
{
	HeapTupleHeader timer = PG_GETARG_HEAPTUPLEHEADER(0);
	bool		is_null;
	char	   *what = TextDatumGetCString(GetAttributeByName(timer, "correlation_id", &is_null));

	if (strcmp(what, "pending") == 0)
		PG_RETURN_NULL();
	if (strcmp(what, "error") == 0)
		ereport(ERROR, errcode(ERRCODE_RAISE_EXCEPTION), errmsg("an error in C"));
	if (strcmp(what, "fatal") == 0)
		ereport(FATAL, errmsg("the end of this process"));
	if (strcmp(what, "exit") == 0)
		proc_exit(1);
	if (strcmp(what, "terminate") == 0)
	{
		kill(MyProcPid, SIGTERM);
		for (;;)
		{
			CHECK_FOR_INTERRUPTS();
			pg_usleep(1000);
		}
	}
	if (strcmp(what, "crash") == 0)
		kill(MyProcPid, SIGKILL);
	if (strcmp(what, "segmentation fault") == 0)
		raise(SIGSEGV);
	PG_RETURN_DATUM(GetAttributeByName(timer, "timer_id", &is_null));
}
