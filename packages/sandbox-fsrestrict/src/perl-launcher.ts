/**
 * The source of the Perl launcher, which starts in a tenth of the time of Node. Like `node-launcher.ts`, it makes the system
 * calls in its first argument, sets the command's environment, and becomes the command in its other arguments.
 */
export const PERL_LAUNCHER = String.raw`
my ($calls, @command) = @ARGV;
my (@results, @held);
for (split /\n/, $calls) {
  my ($failing, $name, $number, @given) = split / /;
  my @args = map {
    my $kind = substr $_, 0, 1;
    if ($kind eq 'x') { my ($bytes, $then) = split /r/, substr $_, 1; defined $then ? pack 'H* l', $bytes, $results[$then] : pack 'H*', $bytes }
    elsif ($kind eq 'r') { $results[substr $_, 1] }
    elsif ($kind eq 'f') { my $filter = pack 'H*', substr $_, 1; push @held, \$filter; pack 'S x6 P', length($filter) / 8, $filter }
    else { $_ + 0 }
  } @given;
  my $result = syscall($number + 0, @args);
  my $error = $! + 0;
  if ($failing eq 'p') { print $result == -1 ? -$error : $result }
  elsif ($result == -1 && $failing eq '!') { print STDERR "the sandbox fails: $name: $!\n"; exit 125 }
  push @results, $result;
}
exit 0 unless @command;
my %env = map { /^COMMAND_(.*)/s ? ($1 => $ENV{$_}) : () } keys %ENV;
%ENV = %env;
exec { $command[0] } @command;
print STDERR "$command[0]: $!\n";
exit($! == 2 ? 127 : 126);
`
