import type { RunBare } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type SystemdReports, systemdReports } from './notify-systemd.ts'

const made: SystemdReports[] = []
afterEach(() => {
  for (const reports of made.splice(0)) reports.close()
})

function arrange({ env = {}, exitCode = 0 }: { readonly env?: Record<string, string>; readonly exitCode?: number } = {}) {
  const sent: { args: readonly string[]; env: Readonly<Record<string, string>> }[] = []
  const warnings: string[] = []
  const run: RunBare = async ({ args, env: given }) => {
    sent.push({ args, env: given })
    return { exitCode, signal: null, timedOut: false, stdout: '', stderr: 'no such socket\n', truncated: false }
  }
  const log = { ...testHost().log, warn: (_: string, fields?: object) => void warnings.push(JSON.stringify(fields)) }
  const reports = systemdReports({ env: { NOTIFY_SOCKET: '/run/systemd/notify', SECRET: 's', ...env }, pid: 42, log, run })
  if (!reports) throw new Error('no reports')
  made.push(reports)
  return { reports, sent, warnings, words: () => sent.map(({ args }) => args[0]) }
}

describe('reports to systemd', () => {
  test('are not made without a socket for them', () => {
    expect(systemdReports({ env: {}, pid: 42, log: testHost().log })).toBeUndefined()
  })

  test('say that the daemon is ready, reloads, is ready again and stops', async () => {
    const { reports, sent, words } = arrange()
    await reports.ready()
    await reports.reloading()
    await reports.ready()
    await reports.stopping()
    expect(words()).toEqual(['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1'])
    expect(sent[1]?.args[1]).toMatch(/^MONOTONIC_USEC=\d+$/)
  })

  test('pass the socket and no other variable of the daemon', async () => {
    const { reports, sent } = arrange()
    await reports.ready()
    expect(Object.keys(sent[0]?.env ?? {}).toSorted()).toEqual(['NOTIFY_SOCKET', 'PATH'])
  })

  test('feed the watchdog three times in its period, until they end', async () => {
    vi.useFakeTimers()
    try {
      const { reports, words } = arrange({ env: { WATCHDOG_USEC: '3000000', WATCHDOG_PID: '42' } })
      await reports.ready()
      await vi.advanceTimersByTimeAsync(3000)
      expect(words()).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'WATCHDOG=1'])
      reports.close()
      await vi.advanceTimersByTimeAsync(3000)
      expect(words().length).toBe(4)
    } finally {
      vi.useRealTimers()
    }
  })

  test('do not feed the watchdog of another process', async () => {
    vi.useFakeTimers()
    try {
      const { reports, words } = arrange({ env: { WATCHDOG_USEC: '3000', WATCHDOG_PID: '41' } })
      await reports.ready()
      await vi.advanceTimersByTimeAsync(1000)
      expect(words()).toEqual(['READY=1'])
    } finally {
      vi.useRealTimers()
    }
  })

  test('that fail are tried five times and logged', async () => {
    const { reports, warnings, words } = arrange({ exitCode: 1 })
    await reports.ready()
    expect(words()).toEqual(Array.from({ length: 5 }, () => 'READY=1'))
    expect(warnings[4]).toContain('no such socket')
  })
})
