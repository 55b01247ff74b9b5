import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { watchPorts } from './watch-ports.ts'

const leaving: AbortController[] = []
const folders: string[] = []
afterEach(async () => {
  for (const abort of leaving.splice(0)) abort.abort()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

function watched(folder: string) {
  const clock = testClock()
  const onChange = vi.fn()
  const abort = new AbortController()
  leaving.push(abort)
  const done = watchPorts(clock, onChange, abort.signal, folder)
  return { clock, onChange, abort, done }
}

async function folderOf() {
  const folder = await mkdtemp(join(tmpdir(), 'dev-'))
  folders.push(folder)
  return folder
}

describe('watchPorts', () => {
  test('reports new ports once after they have settled, and other files never', async () => {
    const folder = await folderOf()
    const { clock, onChange } = watched(folder)
    await writeFile(join(folder, 'null'), '')
    for (const name of ['ttyACM0', 'ttyACM1', 'ttyUSB0']) await writeFile(join(folder, name), '')
    await expect.poll(() => clock.sleeping).toBe(1)
    expect(onChange).not.toHaveBeenCalled()
    await clock.advance(200)
    expect(onChange).toHaveBeenCalledOnce()
  })

  test('polls every 2 s when the folder cannot be watched', async () => {
    const parent = await folderOf()
    const { clock, onChange } = watched(join(parent, 'later'))
    await expect.poll(() => clock.sleeping).toBe(1)
    const { mkdir } = await import('node:fs/promises')
    await mkdir(join(parent, 'later'))
    await writeFile(join(parent, 'later/ttyACM0'), '')
    await clock.advance(1999)
    expect(onChange).not.toHaveBeenCalled()
    await clock.advance(1)
    await expect.poll(() => onChange).toHaveBeenCalledOnce()
  })

  test('polls when the folder gets too many other writes', async () => {
    const folder = await folderOf()
    const { clock, onChange } = watched(folder)
    const busy = join(folder, 'null')
    // The kernel merges equal pending events, so each write uses a name of its own.
    for (let round = 0; clock.sleeping === 0 && round < 60; round++) {
      await Promise.all(Array.from({ length: 60 }, (_, index) => writeFile(`${busy}${index}`, 'x')))
    }
    expect(clock.sleeping).toBe(1)
    await writeFile(join(folder, 'ttyACM0'), '')
    await clock.advance(2000)
    await expect.poll(() => onChange).toHaveBeenCalledOnce()
  })

  test('ends after an abort', async () => {
    const { abort, done } = watched(await folderOf())
    abort.abort()
    await expect(done).resolves.toBeUndefined()
  })
})
