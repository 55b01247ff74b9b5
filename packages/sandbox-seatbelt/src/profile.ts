/** The profile sandbox-exec confines a command by: everything is denied but what stands here. */
import { dirname } from 'node:path'
import type { SandboxPolicy } from '@sluice/sdk'

/** Programs, libraries and what they need to start. */
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
/** Links of the root, which programs go by. */
const LINKS = ['/', '/etc', '/tmp', '/var', '/private', '/private/etc', '/private/var', '/dev']
const SERVICES = ['com.apple.system.opendirectoryd.libinfo', 'com.apple.system.logger', 'com.apple.system.notification_center']
const NETWORK_SERVICES = ['com.apple.SystemConfiguration.configd', 'com.apple.trustd', 'com.apple.dnssd.service']

/** All are real paths; the private folder of the command is among the writable ones. What is hidden may lie in the system. */
export function profile(
  { writable, network, devices = [] }: Pick<SandboxPolicy, 'writable' | 'network' | 'devices'>,
  hidden: string,
): string {
  const above = new Set(writable.flatMap(ancestors))
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
    // of two rules the later one holds
    `(deny file-read* ${named('subpath')(hidden)})`,
    rule('file-read-metadata', [...LINKS, ...above].map(named('literal'))),
    rule('file-read* file-write-data file-ioctl', DEVICES.map(named('literal'))),
    ...(writable.length === 0 ? [] : [rule('file-read* file-write*', writable.map(named('subpath')))]),
    ...(devices.length === 0 ? [] : [rule('file-read* file-write-data file-ioctl', devices.map(named('subpath')))]),
    ...(network ? ['(allow network*)', '(allow system-socket)'] : []),
    // neither does a file of theirs run as somebody else, nor is it a device
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

/** A text in the profile's language: in it only the quote and the backslash mean something. */
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`

function ancestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...ancestors(parent)]
}
