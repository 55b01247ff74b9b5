import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '@sluice/config'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, expect, test, vi } from 'vitest'
import type { SeenFolder } from './folder-marks.ts'
import { NodeFolders } from './node-folders.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

async function arrange(toml = '') {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-node-'))
  folders.push(dataDir)
  const clock = testClock()
  const config = await parseConfig({ dataDir, configFile: join(dataDir, 'config.toml'), features: [], env: {} }, toml)
  const looks: string[] = []
  /** Ends the look at the folder that hangs. */
  let answer: ((seen: SeenFolder) => void) | undefined
  const seen: SeenFolder = { mark: { id: 'a', count: 1 }, seen: {}, problem: null }
  let hangs: string | undefined
  const skills: string[] = []
  const node = new NodeFolders({
    node: 'a',
    dataDir,
    clock,
    config: () => config,
    snapshot: () => ({ service: (name: string) => (name === 'skillFolders' ? () => skills : undefined) }) as never,
    marks: {
      leave: async () => {},
      look(path) {
        looks.push(path.slice(dataDir.length + 1))
        if (path !== hangs) return Promise.resolve(seen)
        return new Promise((resolve) => {
          answer = resolve
        })
      },
    },
  })
  return {
    dataDir,
    clock,
    looks,
    node,
    skills,
    hang: (path: string) => {
      hangs = join(dataDir, path)
    },
    answer: () => {
      hangs = undefined
      answer?.(seen)
    },
    problems: async () => (await node.look([])).map(({ name, problem }) => [name, problem]),
  }
}

test('a mount that hangs is named, and holds up no further look until it answers', async () => {
  const { clock, looks, node, hang, answer, problems } = await arrange()
  const good = [
    ['workspace', null],
    ['files', null],
    ['procedures', null],
    ['skills', null],
    ['identity files', null],
  ]
  expect(await problems()).toEqual(good)
  hang('workspace')
  const looking = node.look([])
  await vi.waitFor(() => expect(clock.sleeping).toBe(1))
  await clock.advance(10_000)
  const during = await looking
  expect(during[0]).toMatchObject({ name: 'workspace', mark: null, seen: null, problem: 'it does not answer within 10 s' })
  expect(during[1]).toMatchObject({ name: 'files', mark: { id: 'a' }, problem: null })
  expect((await problems())[0]).toEqual(['workspace', 'it does not answer within 10 s'])
  expect(looks).toEqual(['workspace', 'files', 'workspace'])
  answer()
  await vi.waitFor(async () => expect(await problems()).toEqual(good))
})

test('each agent has a workspace of its own', async () => {
  const { node, dataDir } = await arrange('[agents.support]\n')
  expect((await node.look([])).filter(({ mark }) => mark).map(({ name, path }) => [name, path.slice(dataDir.length + 1)])).toEqual([
    ['workspace', 'workspace'],
    ['workspace of support', 'workspaces/support'],
    ['files', 'files'],
  ])
})

test('procedures and identity files count, and other files in their folders do not', async () => {
  const { node, dataDir, skills } = await arrange()
  const digests = async () => Object.fromEntries((await node.look([])).map(({ name, digest }) => [name, digest]))
  const write = (path: string) => {
    mkdirSync(join(dataDir, path, '..'), { recursive: true })
    writeFileSync(join(dataDir, path), path)
  }
  const before = await digests()
  for (const path of ['sops/README.md', 'sops/deploy/notes.txt', 'agents/main/notes.md']) write(path)
  expect(await digests()).toEqual(before)
  write('sops/deploy/SOP.md')
  const procedures = await digests()
  expect(procedures).toEqual({ ...before, procedures: expect.not.stringMatching(before.procedures ?? '') })
  write('agents/main/SOUL.md')
  const identity = await digests()
  expect(identity).toEqual({ ...procedures, 'identity files': expect.not.stringMatching(before['identity files'] ?? '') })
  write('elsewhere/pdf/run.sh')
  skills.push(join(dataDir, 'elsewhere/pdf'))
  expect(await digests()).toEqual({ ...identity, skills: expect.not.stringMatching(before.skills ?? '') })
})

test('a folder that takes long to read is not read again at once', async () => {
  const { node, dataDir, clock } = await arrange()
  const file = join(dataDir, 'agents/main/SOUL.md')
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, 'first')
  const identity = async () => (await node.look([])).find(({ name }) => name === 'identity files')
  // Each reading of the clock takes a second, as if the disk were slow.
  let slowMs = 0
  const monotonicMs = clock.monotonicMs
  clock.monotonicMs = () => {
    slowMs += 1_000
    return monotonicMs() + slowMs
  }
  const first = await identity()
  expect(first).toMatchObject({ digest: expect.any(String), problem: null })
  writeFileSync(file, 'second')
  expect(await identity()).toEqual(first)
  slowMs += 100_000
  expect((await identity())?.digest).not.toBe(first?.digest)
})
