/**
 * The source of the Perl launcher, which starts in a tenth of the time of Node. Like `node-launcher.ts`, it makes the system
 * calls in an argument, sets the command's environment, and becomes the command in its last arguments.
 *
 * With a guard in its first argument (`attribute-guard.ts`), a child becomes the command. The launcher performs its guarded calls,
 * and ends when the command ends, in the same way.
 */
export const PERL_LAUNCHER = String.raw`
my ($guard, $calls, @command) = @ARGV;
my @held;
sub make {
  my ($calls, @results, %result) = @_;
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
    $result{$name} = $result;
  }
  return \%result;
}
sub become {
  my %env = map { /^COMMAND_(.*)/s ? ($1 => $ENV{$_}) : () } keys %ENV;
  %ENV = %env;
  exec { $command[0] } @command;
  print STDERR "$command[0]: $!\n";
  exit($! == 2 ? 127 : 126);
}
if ($guard eq '') {
  make($calls);
  exit 0 unless @command;
  become();
}

my ($numbers, $writable, $guarded, $privileges) = split /\n/, $guard, 4;
my ($clone, $ioctl, $nofollow, $fchmodat, $fchownat, $utimensat) = map { $_ + 0 } split / /, $numbers;
my @writable = map { pack 'H*', $_ } split / /, $writable;
my %guarded = map { my ($number, @rest) = split / /; ($number => \@rest) } split /,/, $guarded;

# The child shares the open files and stops this process until it becomes the command (CLONE_FILES, CLONE_VFORK, SIGCHLD).
pipe my $read, my $write;
my $pid = syscall($clone, 0x4411, 0, 0, 0, 0);
if ($pid == -1) { print STDERR "the sandbox fails: clone: $!\n"; exit 125 }
if ($pid == 0) { syswrite $write, make($calls)->{listen}; become() }
close $write;
my $ended = syscall(434, $pid, 0);
if ($ended == -1) { print STDERR "the sandbox fails: pidfd_open: $!\n"; kill 9, $pid; exit 125 }
$SIG{$_} = 'IGNORE' for qw(HUP INT QUIT TERM);
make($privileges);
close $_ for *STDIN, *STDOUT, *STDERR;
if (sysread $read, my $listener, 16) {
  $listener += 0;
  for (;;) {
    my $ready = '';
    vec($ready, $_, 1) = 1 for $listener, $ended;
    next if select($ready, undef, undef, undef) < 1;
    last if vec $ready, $ended, 1;
    serve($listener);
  }
}
waitpid $pid, 0;
my ($signal, $code) = ($? & 127, $? >> 8);
$SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT TERM FPE);
kill $signal, $$ if $signal;
exit $code;

# Answers one call of the command.
sub serve {
  my ($listener) = @_;
  my $call = "\0" x 80;
  return if syscall($ioctl, $listener, 0xc0502100, $call) == -1;
  my ($id, $pid, $number, @args) = unpack 'a8 L x4 l x12 Q6', $call;
  my $error = change($listener, $id, $pid, $number, @args);
  my $answer = pack 'a8 q l L', $id, 0, -$error, 0;
  syscall($ioctl, $listener, 0xc0182101, $answer);
}

# Makes the change if the file is in a writable folder. Returns the error number. The file is opened first, so that it stays the same one.
sub change {
  my ($listener, $id, $pid, $number, @args) = @_;
  my ($changes, $folder, $path, $value, $flags, $link) = @{ $guarded{$number} or return 38 };
  open my $memory, '<:raw', "/proc/$pid/mem" or return 1;
  # The process still waits for this answer, so the memory is its own.
  return 1 if syscall($ioctl, $listener, 0x40082102, $id) == -1;
  $flags = $flags eq '-' ? 0 : $args[$flags];
  $link ||= $flags & 0x100;
  my $at = $folder eq '-' ? -100 : unpack 'l', pack 'L', $args[$folder] & 0xffffffff;
  return 9 if $at < 0 && $at != -100;
  my $name = $at == -100 ? "/proc/$pid/cwd" : "/proc/$pid/fd/$at";
  if ($path eq '-' || !$args[$path]) { return 14 if $at == -100; $link = 0 }
  else {
    my $given = text($memory, $args[$path]);
    return 14 unless defined $given;
    return 36 if length $given > 4095;
    if ($given eq '') { return 2 unless $flags & 0x1000; $link = 0 }
    elsif ($given =~ m{^/}) { $name = $given; $name =~ s{^/+proc/+(?:thread-)?self(?=/)}{/proc/$pid} or $name =~ s{^/+dev/+fd(?=/)}{/proc/$pid/fd} }
    else { $name .= "/$given" }
  }
  # O_PATH | O_CLOEXEC
  sysopen my $file, $name, 0x280000 | ($link ? $nofollow : 0) or return $! + 0;
  my $open = '/proc/self/fd/' . fileno $file;
  my $real = readlink $open;
  return 1 unless grep { $real eq $_ || index($real, "$_/") == 0 } @writable;
  my $result;
  if ($changes eq 'mode') { $result = syscall($fchmodat, -100, $open, $args[$value] & 07777) }
  elsif ($changes eq 'owner') { $result = syscall($fchownat, -100, $open, $args[$value] & 0xffffffff, $args[$value + 1] & 0xffffffff, 0) }
  elsif (!$args[$value]) { $result = syscall($utimensat, -100, $open, 0, 0) }
  else {
    my $bytes = bytes($memory, $args[$value], $changes eq 'seconds' ? 16 : 32);
    return 14 unless defined $bytes;
    my @times = unpack 'q4', $bytes;
    if ($changes eq 'seconds') { @times = ($times[0], 0, $times[1], 0) }
    elsif ($changes eq 'microseconds') { for (1, 3) { return 22 if $times[$_] < 0 || $times[$_] > 999_999; $times[$_] *= 1000 } }
    my $times = pack 'q4', @times;
    $result = syscall($utimensat, -100, $open, $times, 0);
  }
  return $result == -1 ? $! + 0 : 0;
}

sub bytes {
  my ($memory, $address, $length) = @_;
  my $bytes;
  return undef unless sysseek $memory, $address, 0;
  return (sysread($memory, $bytes, $length) // 0) == $length ? $bytes : undef;
}

# Reads up to the terminating zero, page by page.
sub text {
  my ($memory, $address) = @_;
  my $text = '';
  while (length $text < 4096) {
    my $part = bytes($memory, $address, 4096 - $address % 4096);
    return undef unless defined $part;
    my $end = index $part, "\0";
    return $text . substr $part, 0, $end if $end >= 0;
    $text .= $part;
    $address += length $part;
  }
  return $text;
}
`
