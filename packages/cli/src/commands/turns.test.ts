import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { openStore } from '@sluice/store'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { afterAll, beforeAll, expect, test } from 'vitest'

const { dir, dispose } = scratch('[log]\nlevel = "error"\n')
const sluice = (...argv: string[]) => sluiceWith([])('turns', ...argv, '--data-dir', dir)

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const open = () => openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })

beforeAll(async () => {
  const store = open()
  const error = { code: 'upstream', message: 'openai:m answered 503' }
  const steps = [{ kind: 'model', name: 'openai:m', atMs: 1000, tookMs: 1500, outcome: 'error', error: 'answered 503' }] as const
  await store.turns.finish(turnEnd('good', { createdAtMs: 0, endedAtMs: 500, source: 'testchat', sessionId: 'channel:testchat/b/r/ada' }))
  await store.turns.finish(turnEnd('bad', { createdAtMs: 1000, endedAtMs: 2500, status: 'failed', error, steps, messages: [] }))
  await store.close()
})
afterAll(dispose)

test('turns list prints the latest end first, finds by filters, and prints the cursor of the next page', async () => {
  const { out } = await sluice('list')
  expect(out.indexOf('bad')).toBeLessThan(out.indexOf('good'))
  expect(out).toMatch(/failed +1\.5 s/)
  expect((await sluice('list', '--sender', 'ADA')).out).toMatch(/done +500 ms +testchat +ada .*good/)
  expect((await sluice('list', '--error', '503')).out).not.toContain('good')
  expect(await sluice('list', '--channel', 'nowhere')).toMatchObject({ code: 0, out: 'no turns\n' })
  expect((await sluice('list', '--status', 'odd')).err).toContain('status')
  expect((await sluice('list', '--since', 'odd')).err).toContain('--since')
  const [, cursor = ''] = /older ones: add --cursor (\S+)/.exec((await sluice('list', '--limit', '1')).err) ?? []
  expect(JSON.parse((await sluice('list', '--cursor', cursor, '--json')).out)).toMatchObject({ turns: [{ turn_id: 'good' }], next: null })
})

test('turns show prints the timeline, and names a turn that is unknown', async () => {
  const { out } = await sluice('show', 'bad')
  expect(out).toMatch(/error +upstream: openai:m answered 503/)
  expect(out).toMatch(/00:00:01\.000 +model +openai:m +error +1\.5 s +answered 503/)
  expect(out).toMatch(/00:00:02\.500 +end +failed/)
  expect(JSON.parse((await sluice('show', 'bad', '--json')).out)).toMatchObject({
    turn_id: 'bad',
    timeline: [{ kind: 'model' }, { kind: 'end' }],
  })
  expect(await sluice('show', 'none')).toMatchObject({ code: 1, err: expect.stringContaining("There is no turn 'none'") })
})

test('turns show takes the beginning of an id, as a narrow terminal lists it, if no other id begins so', async () => {
  const store = open()
  for (const id of ['01a22f6c-8751-7a60-9e88-414972439214', '01a22f6c-8752-7a60-9e88-414972439214'])
    await store.turns.finish(turnEnd(id, { createdAtMs: 0, endedAtMs: 100, source: 'cli' }))
  await store.close()
  expect((await sluice('show', '01a22f6c-8751')).out).toMatch(/^turn +01a22f6c-8751-7a60-/)
  expect(await sluice('show', '01a22f6c')).toMatchObject({ code: 2, err: expect.stringContaining('2 turns begin with 01a22f6c') })
})
