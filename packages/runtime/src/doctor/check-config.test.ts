import { openPolicy } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import type { Snapshot } from '../features/snapshot.ts'
import { checkPolicyLevel } from './check-config.ts'

const snapshotWith = (...allow: string[]): Snapshot => ({ channels: [{ name: 'mail', allow }] }) as unknown as Snapshot
const check = (policy: object, ...allow: string[]) =>
  checkPolicyLevel({ ...openPolicy, ...policy }, 'security.policy', snapshotWith(...allow))

test('names the setting that protects an agent at level full from unknown senders', () => {
  expect(check({}, 'ada', '*')).toMatchObject({ status: 'warn', fix: 'set [security.policy] ask_after_untrusted = true' })
  expect(check({ ask_after_untrusted: true }, '*')?.fix).toBe('set [security.policy] level = "supervised"')
  expect(check({}, 'ada')?.fix).toBe('set [security.policy] level = "supervised"')
  expect(check({ level: 'supervised' }, '*')).toBeUndefined()
})
