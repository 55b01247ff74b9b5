import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestStore } from '../testing/test-store.ts'

let folder: string
let store: ReturnType<typeof openTestStore>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'memories-'))
  store = openTestStore({ file: join(folder, 'sluice.db') })
})

afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

test('finds a similar memory by a rare word among many newer ones that share common words', async () => {
  const { memory } = store
  const entry = { owner: 'device:me', category: 'core', untrusted: false }
  await memory.put({ ...entry, key: 'safe', content: 'The combination for Zanzibar', atMs: 1 })
  for (const owner of ['device:me', 'device:other'])
    await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        memory.put({ ...entry, owner, key: `n${at}`, content: `the yesterday appointment ${at}`, atMs: 2 + at }),
      ),
    )
  const asked = 'yesterday the appointment was about Zanzibar'
  expect((await memory.similar('device:me', asked, 5)).map(({ key }) => key)).toContain('safe')
  expect(new Set((await memory.similar('device:other', asked, 30)).map(({ owner }) => owner))).toEqual(new Set(['device:other']))
  expect(await memory.similar('device:third', asked, 30)).toEqual([])
})
