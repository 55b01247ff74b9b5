import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DRAIN_MS } from '@sluice/daemon/stop-times'
import { afterAll, describe, expect, test } from 'vitest'
import type { Need, Scope, ServicePlan } from './service-plan.ts'
import { SERVICE_UNIT, SOCKET_UNIT, serviceUnit, socketUnit, userLine } from './systemd-units.ts'

const plan = (more: Partial<ServicePlan> = {}): ServicePlan => ({
  scope: 'system',
  command: [process.execPath, import.meta.filename, 'daemon', '--data-dir', '/var/lib/sluice'],
  dataDir: '/var/lib/sluice',
  writable: [],
  host: '127.0.0.1',
  port: 42_617,
  needs: new Set(),
  groups: [],
  ...more,
})

/** The values of one setting of a unit, in order. */
const values = (unit: string, name: string): string[] =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
const value = (unit: string, name: string): string | undefined => values(unit, name)[0]

describe('the service unit', () => {
  test('waits longer than the drain before it kills the daemon', () => {
    expect(Number(value(serviceUnit(plan()), 'TimeoutStopSec')) * 1000).toBeGreaterThan(DRAIN_MS + 5000)
  })

  test('does not restart a daemon with a wrong configuration', () => {
    expect(value(serviceUnit(plan()), 'RestartPreventExitStatus')).toBe('78')
    const closing = `-c '[ "$$EXIT_STATUS" != 78 ] || systemctl --no-block stop sluice.socket'`
    expect(value(serviceUnit(plan()), 'ExecStopPost')).toBe(`+/bin/sh ${closing}`)
    expect(value(serviceUnit(plan({ scope: 'user' })), 'ExecStopPost')).toBe(`/bin/sh ${closing.replace('systemctl', 'systemctl --user')}`)
  })

  test.each<[Need, string[]]>([
    [
      'setuid',
      ['NoNewPrivileges', 'SystemCallFilter', 'RestrictNamespaces', 'PrivateDevices', 'CapabilityBoundingSet', 'ProtectKernelTunables'],
    ],
    ['namespaces', ['RestrictNamespaces', 'ProtectHostname', 'ProtectKernelTunables', 'ProtectKernelLogs', 'ProtectProc']],
    ['devices', ['PrivateDevices', 'ProtectClock']],
  ])('gives up for %s only the restrictions that would rule it out', (need, ruledOut) => {
    const strict = serviceUnit(plan())
    const relaxed = serviceUnit(plan({ needs: new Set([need]) }))
    for (const name of ruledOut) expect([name, values(strict, name).length > 0, values(relaxed, name)]).toEqual([name, true, []])
    expect(values(relaxed, 'ProtectSystem')).toEqual(['strict'])
  })

  test('lets sandboxes with namespaces mount, and nothing else', () => {
    expect(values(serviceUnit(plan()), 'SystemCallFilter').join(' ')).not.toContain('@mount')
    expect(values(serviceUnit(plan({ needs: new Set(['namespaces']) })), 'SystemCallFilter')).toContain('@mount sethostname')
  })

  test('opens the devices of boards to a service with hardware, and no others', () => {
    const unit = serviceUnit(plan({ needs: new Set(['devices']), groups: ['dialout', 'gpio'] }))
    expect(value(unit, 'DevicePolicy')).toBe('closed')
    expect(values(unit, 'DeviceAllow')).toContain('char-ttyACM rw')
    expect(value(unit, 'SupplementaryGroups')).toBe('dialout gpio')
    expect(values(serviceUnit(plan()), 'DeviceAllow')).toEqual([])
  })

  test('writes only its data directory and the folders of the plan', () => {
    const unit = serviceUnit(plan({ writable: ['/srv/my files', '/srv/%n'] }))
    expect(value(unit, 'ReadWritePaths')).toBe('"-/srv/my files" -/srv/%%n')
    expect(value(unit, 'ProtectHome')).toBe('yes')
    expect(value(serviceUnit(plan({ writable: ['/home/ada/work'] })), 'ProtectHome')).toBeUndefined()
  })

  test('quotes the words of its command', () => {
    const unit = serviceUnit(plan({ command: ['/opt/my node', '/x/$HOME/%h', 'a"b'] }))
    expect(value(unit, 'ExecStart')).toBe('"/opt/my node" /x/$$HOME/%%h "a\\"b"')
  })

  test('of a user names no user and changes no view of the files', () => {
    const unit = serviceUnit(plan({ scope: 'user' }))
    for (const name of ['User', 'StateDirectory', 'ProtectSystem', 'PrivateDevices', 'PrivateTmp'])
      expect([name, values(unit, name)]).toEqual([name, []])
    expect(value(unit, 'NoNewPrivileges')).toBe('yes')
  })
})

test('the socket unit binds the configured address', () => {
  expect(value(socketUnit(plan()), 'ListenStream')).toBe('127.0.0.1:42617')
  expect(value(socketUnit(plan({ host: '::1', port: 80 })), 'ListenStream')).toBe('[::1]:80')
})

test('the user of a system service owns its data directory', () => {
  expect(userLine()).toBe('u sluice - "Sluice agent runtime" /var/lib/sluice\n')
})

const folder = mkdtempSync(join(tmpdir(), 'units-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hasAnalyzer = spawnSync('systemd-analyze', ['--version']).status === 0
const NEEDS: readonly (readonly Need[])[] = [[], ['namespaces'], ['setuid'], ['devices'], ['namespaces', 'devices']]
const UNITS = (['system', 'user'] as Scope[]).flatMap((scope) =>
  NEEDS.map((needs) => [scope, needs.join(' and ') || 'nothing', needs] as const),
)

/** Skipped on machines without systemd. */
test.skipIf(!hasAnalyzer).each(UNITS)(
  'systemd-analyze accepts the units of a %s service that needs %s',
  { timeout: 60_000 },
  (scope, _, needs) => {
    const made = plan({ scope, needs: new Set(needs), writable: ['/srv/my files'] })
    writeFileSync(join(folder, SERVICE_UNIT), serviceUnit(made))
    writeFileSync(join(folder, SOCKET_UNIT), socketUnit(made))
    const files = [SERVICE_UNIT, SOCKET_UNIT].map((name) => join(folder, name))
    // For units of a user, it needs the folder of a session.
    const env = { ...process.env, XDG_RUNTIME_DIR: folder }
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', `--${scope}`, ...files], { encoding: 'utf8', env })
    const ours = stderr.split('\n').filter((line) => line.includes('sluice'))
    expect({ status, ours }).toEqual({ status: 0, ours: [] })
  },
)
