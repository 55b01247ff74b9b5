import { expect, test } from 'vitest'
import { jailOptions } from './jail-options.ts'

const view = { root: ['usr', 'home', 'srv', 'data', 'etc', 'sys'], etc: ['hosts', 'ssl/certs'], dataDir: '/opt/sluice' }
const options = (writable: string[], network = false, devices: string[] = []) =>
  jailOptions({ cwd: writable[0] ?? '/' }, { writable, network, devices }, view, { LD_PRELOAD: 'x' })

test('the root is read-only, and the folders of the policy are not', () => {
  const given = options(['/srv/work'])
  expect(given.indexOf('--read-only=/')).toBeLessThan(given.indexOf('--read-write=/srv/work'))
  expect(given).toContain('--whitelist=/srv/work')
})

test('folders of the root that hold no programs are hidden, but the one with the workspace', () => {
  expect(options(['/srv/work'])).toContain('--blacklist=/data')
  expect(options(['/srv/work'])).not.toContain('--blacklist=/srv')
})

test('a data directory among programs is hidden; where the workspace lies in it, only the workspace is shown', () => {
  expect(options(['/srv/work'])).toContain('--blacklist=/opt/sluice')
  const within = options(['/opt/sluice/work'])
  expect(within).toContain('--whitelist=/opt/sluice/work')
  expect(within.filter((option) => option.startsWith('--blacklist=/opt'))).toEqual([])
})

test('the network is cut unless the policy gives it', () => {
  expect(options(['/srv/work'])).toContain('--net=none')
  expect(options(['/srv/work'], true)).not.toContain('--net=none')
})

test('devices are private, or those of the policy beside harmless ones, and /sys is shown with them alone', () => {
  expect(options([])).toEqual(expect.arrayContaining(['--private-dev', '--nogroups', '--blacklist=/sys']))
  const given = options([], false, ['/dev/bus/usb'])
  expect(given).toEqual(expect.arrayContaining(['--whitelist=/dev/bus/usb', '--whitelist=/dev/null']))
  for (const left of ['--private-dev', '--nogroups', '--blacklist=/sys', '--whitelist=/dev/shm', '--whitelist=/dev/pts'])
    expect(given).not.toContain(left)
})

test('what would change firejail itself is set inside only', () => {
  expect(options(['/srv/work'])).toContain('--env=LD_PRELOAD=x')
})

test.each(['/srv/a,b', '/srv/*', '/srv/%x', '/srv/"x"', '/srv/a\nb', '/srv/[x]'])(
  'a folder firejail would take for more than its name is refused: %j',
  (path) => {
    expect(() => options([path])).toThrow(expect.objectContaining({ code: 'unavailable' }))
  },
)
