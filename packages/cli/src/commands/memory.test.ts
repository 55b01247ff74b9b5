/** `sluice memory`, on a store that no daemon has open. */
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { afterEach, describe, expect, test } from 'vitest'

const DEVICE = 'device:d1'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

async function arrange(...entries: (readonly [owner: string, key: string, content: string])[]) {
  const { dir, dispose } = scratch()
  cleanups.push(dispose)
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
  await store.devices.add({ id: 'd1', name: 'phone', tokenHash: 'h', role: 'client', createdAtMs: 0, expiresAtMs: null })
  for (const [owner, key, content] of entries) await store.memory.put({ owner, key, content, category: 'core', untrusted: false, atMs: 0 })
  await store.close()
  const run = sluiceWith([])
  const memory = (...argv: string[]) => run('memory', ...argv, '--data-dir', dir)
  const json = async (...argv: string[]) => JSON.parse((await memory(...argv, '--json')).out)
  return { memory, json }
}

describe('sluice memory', () => {
  test('list and show name the owner; show refuses an ambiguous key', async () => {
    const { memory, json } = await arrange([DEVICE, 'pet', 'a dog'], ['cli', 'pet', 'a cat'], [SHARED_MEMORIES, 'rule', 'shoes off'])
    expect((await json('list')).map(({ owner, key }: { owner: string; key: string }) => [owner, key])).toEqual([
      ['shared', 'rule'],
      ['cli', 'pet'],
      [DEVICE, 'pet'],
    ])
    expect(await json('list', '--owner', 'cli')).toMatchObject([{ content: 'a cat' }])
    expect(await json('show', 'rule')).toMatchObject({ owner: 'shared', content: 'shoes off' })
    expect(await memory('show', 'pet')).toMatchObject({ code: 2, err: expect.stringContaining(`cli, ${DEVICE}: add --owner`) })
    expect((await memory('show', 'pet', '--owner', DEVICE)).out).toContain('a dog')
    expect(await memory('show', 'nothing')).toMatchObject({ code: 1, err: expect.stringContaining("'sluice memory list'") })
  })

  test('forget removes one memory, or every memory of one owner', async () => {
    const { memory, json } = await arrange([DEVICE, 'a', '1'], [DEVICE, 'b', '2'], [DEVICE, 'c', '3'], ['cli', 'a', '4'])
    expect((await memory('forget', 'b')).out).toBe('forgot 1 memory\n')
    expect((await memory('forget', '--all')).code).toBe(2)
    expect((await memory('forget')).code).toBe(2)
    expect((await memory('forget', '--owner', DEVICE, '--all')).out).toBe('forgot 2 memories\n')
    expect(await json('list')).toMatchObject([{ owner: 'cli', key: 'a' }])
  })

  test('assign gives memories to a device or to all, without overwriting', async () => {
    const { memory, json } = await arrange(
      [UNOWNED_MEMORIES, 'a', 'old'],
      [UNOWNED_MEMORIES, 'b', 'old'],
      [UNOWNED_MEMORIES, 'c', 'old'],
      [DEVICE, 'a', 'new'],
    )
    expect(await json('assign', '--shared', '--key', 'c')).toEqual({ assigned: 1, left: 0 })
    const given = await memory('assign', DEVICE)
    expect(given.out).toBe(`gave 1 memory to ${DEVICE}\n`)
    expect(given.err).toContain(`1 memory stayed with unowned, because ${DEVICE} uses the same key already`)
    expect(await json('list')).toMatchObject([
      { owner: 'unowned', key: 'a', content: 'old' },
      { owner: 'shared', key: 'c' },
      { owner: DEVICE, key: 'a', content: 'new' },
      { owner: DEVICE, key: 'b' },
    ])
  })

  test.each([
    ['a device that is not paired', ['assign', 'device:d2'], "no device 'd2'"],
    ['an owner that cannot be one', ['assign', 'alice'], "got 'alice'"],
    ['no owner at all', ['assign'], '--shared'],
    ['an owner to list that cannot be one', ['list', '--owner', 'channel:x'], 'owner must be'],
  ])('refuses %s', async (_what, argv, says) => {
    const { memory } = await arrange()
    const { code, err } = await memory(...argv)
    expect(code).toBeGreaterThan(0)
    expect(err).toContain(says)
  })
})
