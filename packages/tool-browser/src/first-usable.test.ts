import { AppError, type Finding } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import { describe, expect, test } from 'vitest'
import type { Action } from './actions.ts'
import { FirstUsable } from './first-usable.ts'

const OK: Finding = { status: 'ok', detail: 'started' }
const ACTION = { action: 'get_url' } as Action

/** A driver that cannot be used while `state.reason` is set. */
function candidate(name: string, reason?: string) {
  const state: { reason: string | undefined; closed: number; checks: number } = { reason, closed: 0, checks: 0 }
  const driver = {
    async unusableReason() {
      state.checks++
      return state.reason
    },
    run: async () => `by ${name}`,
    check: async () => [OK],
    async close() {
      state.closed++
    },
  }
  return { name, state, load: async () => driver }
}

const arrange = (...candidates: ReturnType<typeof candidate>[]) => {
  const { log, logs } = testHost()
  return { browser: new FirstUsable(candidates, log), logs }
}

describe('FirstUsable', () => {
  test('selects the first usable driver once', async () => {
    const [first, second] = [candidate('first'), candidate('second')]
    const { browser, logs } = arrange(first, second)
    expect(await Promise.all([browser.run(ACTION, toolContext()), browser.run(ACTION, toolContext())])).toEqual(['by first', 'by first'])
    expect([first.state.checks, second.state.checks, logs.length]).toEqual([1, 0, 0])
    expect(await browser.check(toolContext().signal)).toEqual([OK])
  })

  test('skips an unusable driver with a warning, and the check says why', async () => {
    const [first, second] = [candidate('first', 'its program is missing'), candidate('second')]
    const { browser, logs } = arrange(first, second)
    expect(await browser.run(ACTION, toolContext())).toBe('by second')
    expect(logs).toMatchObject([{ level: 'warn' }])
    expect(await browser.check(toolContext().signal)).toEqual([
      {
        status: 'warn',
        detail: 'first cannot be used: its program is missing; second is used instead',
        fix: expect.stringContaining('"second"'),
      },
      OK,
    ])
    await browser.close()
    expect([first.state.closed, second.state.closed]).toEqual([1, 1])
  })

  test('gives every reason when no driver is usable, and tries again next time', async () => {
    const [first, second] = [candidate('first', 'missing'), candidate('second', 'no Chromium')]
    const { browser } = arrange(first, second)
    await expect(browser.run(ACTION, toolContext())).rejects.toThrow(
      new AppError(
        'unavailable',
        'No browser can be used on this machine: first cannot be used: missing; second cannot be used: no Chromium',
      ),
    )
    second.state.reason = undefined
    expect(await browser.run(ACTION, toolContext())).toBe('by second')
  })
})
