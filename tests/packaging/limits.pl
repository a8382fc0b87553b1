# Shows that the limits of opmill-server.service act. Perl, because every Debian has it.
#
#   limits.pl try ADDRESS            tries what the unit forbids, and prints what comes of each attempt
#   limits.pl compare FREE LIMITED   compares what this has printed in a unit of an ordinary user without
#                                    limits, and in one with the settings of the service
#
# Before it, the script has made /srv/limits, with what is tried.

use strict;
use warnings;
use Errno;
use POSIX ();
use Socket;

my %numbers = (
  x86_64  => {ptrace => 101, personality => 135, unshare => 272},
  aarch64 => {ptrace => 117, personality => 92,  unshare => 97},
);
my $call = $numbers{(POSIX::uname())[4]} or die "limits.pl does not know the system calls of this machine\n";
my ($new_user_namespace, $trace_me, $linux32) = (0x10000000, 0, 8);
my $instead;    # what came of an attempt that failed without an error of the system
my $outside;    # an address of this machine that is not loopback, if there is one

sub tcp { socket(my $socket, PF_INET, SOCK_STREAM, 0) or return; return $socket }

sub bound_to {
  my $socket = tcp() or return;
  setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
  return bind($socket, sockaddr_in($_[0], INADDR_LOOPBACK)) && listen($socket, 1) ? $socket : undef;
}

# What is tried; the setting that forbids it, and how. '': it stays allowed.
my @attempts = (
  ['listen on port 50051', 'SocketBindAllow', '', sub { bound_to(50051) }],
  ['listen on port 50052', 'SocketBindDeny', 'EPERM', sub { bound_to(50052) }],
  ['connect to a port of this machine', 'SystemCallFilter', 'EPERM', sub {
    my $listener = bound_to(50051) or return;
    connect(tcp(), getsockname($listener));
  }],
  ['send a datagram to 127.0.0.1', 'IPAddressAllow', '', sub { datagram('127.0.0.1') }],
  ['send a datagram to another address', 'IPAddressDeny', 'EPERM', sub { datagram($outside) }],
  ['open a netlink socket', 'RestrictAddressFamilies', 'EAFNOSUPPORT', sub { socket(my $socket, 16, SOCK_RAW, 0) }],
  ['open a Unix socket', 'RestrictAddressFamilies', '', sub { socket(my $socket, PF_UNIX, SOCK_STREAM, 0) }],
  ['be traced by the parent', 'SystemCallFilter', 'EPERM', sub { syscall($call->{ptrace}, $trace_me, 0, 0, 0) == 0 }],
  ['set the own priority', 'SystemCallFilter', 'EPERM', sub { setpriority(0, 0, getpriority(0, 0)) }],
  ['change the personality', 'LockPersonality', 'EPERM', sub { syscall($call->{personality}, $linux32) != -1 }],
  ['make a user namespace', 'RestrictNamespaces', 'EPERM', sub { syscall($call->{unshare}, $new_user_namespace) == 0 }],
  ['set the set-user-ID bit', 'RestrictSUIDSGID', 'EPERM', sub {
    my $file = "/tmp/own.$$";
    open(my $new, '>', $file) && chmod(04755, $file);
  }],
  ['become root by a set-user-ID program', 'NoNewPrivileges', 'stays itself', sub {
    my $user = qx(/srv/limits/id -u);
    chomp $user;
    $instead = 'stays itself';
    $user eq '0';
  }],
  ['write to a folder of all users', 'ProtectSystem', 'EROFS', sub { open(my $new, '>', "/srv/limits/new.$$") }],
  ['read a file of all users in /home', 'ProtectHome', 'EACCES', sub { open(my $file, '<', '/home/limits') }],
  ['see a file of others in /tmp', 'PrivateTmp', 'ENOENT', sub { open(my $file, '<', '/tmp/limits') }],
  ['see a process of another user', 'ProtectProc', 'ENOENT', sub { stat('/proc/1/status') }],
  ['open a device that is no GPU', 'DevicePolicy', 'EPERM', sub { open(my $device, '<', '/srv/limits/device') }],
);

sub datagram {
  socket(my $socket, PF_INET, SOCK_DGRAM, 0) or return;
  return send($socket, 'x', 0, sockaddr_in(9, inet_aton($_[0])));
}

# In a process of its own, because some attempts change it.
sub result_of {
  my ($attempt) = @_;
  pipe(my $from, my $to);
  my $child = fork() // die "fork: $!\n";
  if (!$child) {
    $! = 0;
    my $result = $attempt->() ? 'done' : $instead // (grep { $!{$_} } sort keys %!)[0] // 'nothing';
    syswrite($to, $result);
    POSIX::_exit(0);
  }
  close($to);
  my $result = join('', <$from>);
  waitpid($child, 0);
  return $? & 127 ? 'signal ' . ($? & 127) : $result;
}

sub results_in {
  open(my $file, '<', $_[0]) or die "$_[0]: $!\n";
  return map { chomp; split(/: /, $_, 2) } <$file>;
}

my ($verb, @arguments) = @ARGV;
if ($verb eq 'try') {
  $outside = $arguments[0];
  $| = 1;
  print "$_->[0]: ", result_of($_->[3]), "\n" for @attempts;
  exit 0;
}

my %free = results_in($arguments[0]);
my %limited = results_in($arguments[1]);
# systemd enforces these with programs in the kernel, if it can; the script says why not.
my %missing = (SocketBindDeny => $ENV{NO_PORTS}, IPAddressDeny => $ENV{NO_BPF}, DevicePolicy => $ENV{NO_BPF});
my $failed = 0;
for (@attempts) {
  my ($what, $setting, $expected) = @$_;
  my ($free, $limited) = ($free{$what} // 'nothing', $limited{$what} // 'nothing');
  if ($free ne 'done') {
    print "not shown: $setting: this system lets no service $what ($free).\n";
  } elsif ($limited eq ($expected || 'done')) {
    print $expected ? "refused by $setting: $what: $limited\n" : "allowed by $setting: $what\n";
  } elsif ($limited eq 'done' && $missing{$setting}) {
    print "not shown: $setting: this system does not enforce it: $missing{$setting}\n";
  } else {
    print "FAILED: $setting: $what: ", ($expected || 'done'), " was expected, not $limited.\n";
    $failed = 1;
  }
}
exit $failed;
