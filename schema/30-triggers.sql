-- Triggers that see every write. ENABLE ALWAYS: also under session_replication_role = replica, as a subscription
-- applies changes.

create function timers._on_timer() returns trigger
language c as 'MODULE_PATHNAME', 'timers_on_timer';
comment on function timers._on_timer() is 'Keeps wake_at and died_at, checks names and times, and notes what the dispatcher must hear of.';

create trigger _on_timer before insert or update or delete on timers.timer
for each row execute function timers._on_timer();
alter table timers.timer enable always trigger _on_timer;

create function timers._on_claim() returns trigger
language c as 'MODULE_PATHNAME', 'timers_on_claim';
comment on function timers._on_claim() is 'Notes when a lease ends.';

create trigger _on_claim before insert or update on timers.claim
for each row execute function timers._on_claim();
alter table timers.claim enable always trigger _on_claim;

create function timers._on_settings() returns trigger
language c as 'MODULE_PATHNAME', 'timers_on_settings';
comment on function timers._on_settings() is 'Notes that settings changed.';

create trigger _on_settings before insert or update or delete on timers.process_manager
for each row execute function timers._on_settings();
alter table timers.process_manager enable always trigger _on_settings;

create trigger _on_settings before insert or update or delete on timers.armed
for each row execute function timers._on_settings();
alter table timers.armed enable always trigger _on_settings;
