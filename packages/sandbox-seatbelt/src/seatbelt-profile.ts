/** Builds the profile by which sandbox-exec confines a command. It denies everything that it does not allow explicitly. */
import { dirname } from 'node:path'
import type { SandboxPolicy } from '@sluice/sdk'

/** Folders of programs, libraries and the files that programs need to start. */
const SYSTEM = [
  '/bin',
  '/sbin',
  '/usr',
  '/System',
  '/Library/Apple',
  '/Library/Frameworks',
  '/Library/Developer/CommandLineTools',
  '/opt/homebrew',
  '/opt/local',
  '/nix/store',
  '/private/etc/ssl',
  '/private/var/db/dyld',
  '/private/var/db/timezone',
  '/private/var/select',
]
const SYSTEM_FILES = [
  '/private/etc/group',
  '/private/etc/hosts',
  '/private/etc/localtime',
  '/private/etc/passwd',
  '/private/etc/protocols',
  '/private/etc/services',
  '/private/etc/shells',
  '/dev/random',
  '/dev/urandom',
]
const DEVICES = ['/dev/null', '/dev/zero', '/dev/fd']
/** Folders and links near the root, whose metadata programs read. */
const LINKS = ['/', '/etc', '/tmp', '/var', '/private', '/private/etc', '/private/var', '/dev']
const SERVICES = ['com.apple.system.opendirectoryd.libinfo', 'com.apple.system.logger', 'com.apple.system.notification_center']
const NETWORK_SERVICES = ['com.apple.SystemConfiguration.configd', 'com.apple.trustd', 'com.apple.dnssd.service']

/** Returns the text of the profile. All paths must be real paths. `hidden` may be below a readable folder of the system. */
export function seatbeltProfile(
  { writable, readable = [], network, devices = [] }: Pick<SandboxPolicy, 'writable' | 'readable' | 'network' | 'devices'>,
  hidden: string,
): string {
  const above = new Set([...writable, ...readable].flatMap(ancestors))
  return [
    '(version 1)',
    '(deny default)',
    '(allow process-fork)',
    '(allow process-exec)',
    '(allow process-info* (target same-sandbox))',
    '(allow signal (target same-sandbox))',
    '(allow sysctl-read)',
    rule('mach-lookup', [...SERVICES, ...(network ? NETWORK_SERVICES : [])].map(named('global-name'))),
    rule('file-read*', [...SYSTEM.map(named('subpath')), ...SYSTEM_FILES.map(named('literal'))]),
    // The last matching rule decides.
    `(deny file-read* ${named('subpath')(hidden)})`,
    rule('file-read-metadata', [...LINKS, ...above].map(named('literal'))),
    rule('file-read* file-write-data file-ioctl', DEVICES.map(named('literal'))),
    ...(readable.length === 0 ? [] : [rule('file-read*', readable.map(named('subpath')))]),
    ...(writable.length === 0 ? [] : [rule('file-read* file-write*', writable.map(named('subpath')))]),
    ...(devices.length === 0 ? [] : [rule('file-read* file-write-data file-ioctl', devices.map(named('subpath')))]),
    ...(network ? ['(allow network*)', '(allow system-socket)'] : []),
    // The command cannot create set-id files or device nodes.
    '(deny file-write-setugid)',
    '(deny file-mknod)',
    '',
  ].join('\n')
}

const rule = (operations: string, filters: readonly string[]): string => `(allow ${operations} ${filters.join(' ')})`

const named =
  (filter: string) =>
  (text: string): string =>
    `(${filter} ${quoted(text)})`

/** Quotes a text for the profile, in which only the quote and the backslash are special. */
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`

function ancestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...ancestors(parent)]
}
