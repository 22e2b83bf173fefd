# The documents of the project, as tests read them: their sections, and the SQL in them.
package Document;

use strict;
use warnings;

use Exporter qw(import);
use FindBin;
use PostgreSQL::Test::Utils qw(slurp_file);

our @EXPORT = qw(document section sql_blocks);

# A document by its path in the tree.
sub document { return slurp_file("$FindBin::RealBin/../../$_[0]") }

# The lines from a heading to the next of the same rank or a higher one; '' when there is none.
sub section {
    my ($text, $heading) = @_;
    my ($rank) = $heading =~ /^(#+)/;
    return $text =~ /^\Q$heading\E\n(.*?)(?=^#{1,${\ length $rank}} |\z)/ms ? $1 : '';
}

# The blocks of SQL in a text, one string each.
sub sql_blocks { return $_[0] =~ /^```sql\n(.*?)^```$/msg }

1;
