import { DRAIN_MS } from '@sluice/daemon/stop-times'
import { expect, test } from 'vitest'
import { launchdPlist } from './launchd-plist.ts'
import type { ServicePlan } from './service-plan.ts'

const plan = (more: Partial<ServicePlan> = {}): ServicePlan => ({
  scope: 'user',
  command: ['/opt/node', '/opt/sluice & co/sluice.mjs', 'daemon'],
  dataDir: '/Users/ada/.sluice',
  writable: [],
  host: '127.0.0.1',
  port: 42_617,
  needs: new Set(),
  groups: [],
  ...more,
})

/** The element after a key. */
const after = (text: string, key: string): string | undefined => new RegExp(`<key>${key}</key>\\s*(\\S+)`).exec(text)?.[1]

test('the property list starts the daemon, and starts it again after a failure', () => {
  const text = launchdPlist(plan(), 'ada')
  expect(text).toContain('<string>/opt/sluice &amp; co/sluice.mjs</string>')
  expect(after(text, 'RunAtLoad')).toBe('<true/>')
  expect(after(text, 'SuccessfulExit')).toBe('<false/>')
})

test('launchd waits longer than the drain before it kills the daemon', () => {
  const secs = Number(/\d+/.exec(after(launchdPlist(plan(), 'ada'), 'ExitTimeOut') ?? '')?.[0])
  expect(secs * 1000).toBeGreaterThan(DRAIN_MS + 5000)
})

test('only a service of the machine names its user', () => {
  expect(after(launchdPlist(plan(), 'ada'), 'UserName')).toBeUndefined()
  expect(after(launchdPlist(plan({ scope: 'system' }), 'ada'), 'UserName')).toBe('<string>ada</string>')
})

test('every element is closed', () => {
  const open: string[] = []
  for (const [, slash, name = '', empty] of launchdPlist(plan(), 'ada').matchAll(
    /<(\/?)(plist|dict|array|key|string|integer|true|false)[^>]*?(\/?)>/g,
  )) {
    if (slash) expect(open.pop()).toBe(name)
    else if (!empty) open.push(name)
  }
  expect(open).toEqual([])
})
