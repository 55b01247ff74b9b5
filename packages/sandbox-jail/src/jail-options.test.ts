import { describe, expect, test } from 'vitest'
import { jailOptions, type View } from './jail-options.ts'

const view: View = {
  root: ['usr', 'home', 'srv', 'data', 'etc', 'sys'],
  etc: ['hosts', 'ssl/certs'],
  dataDir: '/opt/sluice',
  home: '/home/ann',
  isRoot: false,
  resolver: '/run/systemd/resolve/stub-resolv.conf',
}
const options = (writable: string[], network = false, devices: string[] = [], changes: Partial<View> = {}) =>
  jailOptions({ cwd: writable[0] ?? '/' }, { writable, network, devices }, { ...view, ...changes }, { LD_PRELOAD: 'x' })
const EMPTIED = /^--whitelist=(.*)\/\.sluice-shows-nothing$/
const emptied = (given: readonly string[]) => given.flatMap((option) => EMPTIED.exec(option)?.[1] ?? [])

describe('jailOptions', () => {
  test('makes the root read-only, except the folders of the policy', () => {
    const given = options(['/srv/work'])
    expect(given.indexOf('--read-only=/')).toBeLessThan(given.indexOf('--read-write=/srv/work'))
    expect(given).toContain('--whitelist=/srv/work')
  })

  test('hides folders of the root without programs, except that of the workspace', () => {
    expect(options(['/srv/work'])).toContain('--blacklist=/data')
    expect(options(['/srv/work'])).not.toContain('--blacklist=/srv')
  })

  test('hides a data directory among programs, except a workspace inside it', () => {
    expect(options(['/srv/work'])).toContain('--blacklist=/opt/sluice')
    const within = options(['/opt/sluice/work'])
    expect(within).toContain('--whitelist=/opt/sluice/work')
    expect(within.filter((option) => option.startsWith('--blacklist=/opt'))).toEqual([])
  })

  test('empties /run, except the resolver configuration with a network', () => {
    expect(emptied(options(['/srv/work']))).toContain('/run')
    expect(options(['/srv/work']).filter((option) => option.startsWith('--whitelist=/run/'))).toHaveLength(1)
    expect(options(['/srv/work'])).toContain('--blacklist=/run/user')
    expect(options(['/srv/work'], true)).toContain('--whitelist=/run/systemd/resolve/stub-resolv.conf')
    expect(options(['/srv/work'], true, [], { resolver: '/etc/resolv.conf' }).join(' ')).not.toMatch(/=\/run\/s/)
  })

  test("makes firejail's folder in /run read-only for root", () => {
    const given = options(['/srv/work'], false, [], { isRoot: true })
    expect(given.indexOf('--read-only=/run/firejail')).toBeLessThan(given.indexOf('--read-write=/run/firejail/mnt'))
    expect(given.indexOf('--read-only=/run/firejail')).toBeGreaterThan(0)
  })

  test.each([
    ['below /home', { home: '/home/ann' }, ['/run', '/home', '/home/ann']],
    ['below /var', { home: '/var/lib/sluice' }, ['/run', '/var', '/var/lib/sluice']],
    ['among programs', { home: '/opt/sluice' }, ['/run', '/opt/sluice']],
    ['that does not exist', { home: undefined }, ['/run']],
    ['of root', { home: '/root', isRoot: true }, ['/run', '/root', '/home']],
  ])('empties a home %s, except the folders of the policy', (_where, changes, folders) => {
    const given = options(['/home/ann/.sluice/workspace'], false, [], changes)
    expect(emptied(given)).toEqual(folders)
    expect(given).toContain('--whitelist=/home/ann/.sluice/workspace')
    expect(given).not.toContain('--private')
  })

  test('hides the socket of the Nix daemon', () => {
    expect(options(['/srv/work'])).toContain('--blacklist=/nix/var')
  })

  test('disables the network unless the policy allows it', () => {
    expect(options(['/srv/work'])).toContain('--net=none')
    expect(options(['/srv/work'], true)).not.toContain('--net=none')
  })

  test('shows the devices of the policy with harmless ones, and /sys only with devices', () => {
    expect(options([])).toEqual(expect.arrayContaining(['--private-dev', '--nogroups', '--blacklist=/sys']))
    const given = options([], false, ['/dev/bus/usb'])
    expect(given).toEqual(expect.arrayContaining(['--whitelist=/dev/bus/usb', '--whitelist=/dev/null']))
    for (const left of ['--private-dev', '--nogroups', '--blacklist=/sys', '--whitelist=/dev/shm', '--whitelist=/dev/pts'])
      expect(given).not.toContain(left)
  })

  test('sets variables that would change firejail only for the command', () => {
    expect(options(['/srv/work'])).toContain('--env=LD_PRELOAD=x')
  })

  test.each(['/srv/a,b', '/srv/*', '/srv/%x', '/srv/"x"', '/srv/a\nb', '/srv/[x]'])(
    'refuses a folder whose name firejail would interpret: %j',
    (path) => {
      expect(() => options([path])).toThrow(expect.objectContaining({ code: 'unavailable' }))
    },
  )
})
