import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoadedConfig, parseConfig } from '@sluice/config'
import type { ClusterNode, NodeReport } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, expect, test, vi } from 'vitest'
import type { NodeFinding } from './compare-nodes.ts'
import { watchNodes } from './watch-nodes.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** Nodes whose only database is a map. `files` is a folder of all of them. */
async function arrange() {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-nodes-'))
  folders.push(dir)
  const clock = testClock()
  const reports = new Map<string, NodeReport>()
  const over = new AbortController()
  let reported = 0
  let rounds = 1
  const nodes = async () => [...reports].map(([node, report]) => ({ node, state: 'up', report })) as unknown as readonly ClusterNode[]
  const config: LoadedConfig = await parseConfig(
    { dataDir: dir, configFile: join(dir, 'config.toml'), env: {}, features: [], home: dir } as never,
    `[agent]\nworkspace = "${join(dir, 'workspace')}"\n[provider]\nkind = "offline"\n`,
  )
  const node = (name: string) => {
    const dataDir = join(dir, name)
    mkdirSync(dataDir, { recursive: true })
    const { log, logs } = testHost()
    let found: readonly NodeFinding[] = []
    const watched = watchNodes(
      {
        cluster: {
          node: name,
          nodes,
          async report(report) {
            reports.set(name, report)
            reported++
          },
        },
        dataDir,
        clock,
        log,
        config: () => config,
        snapshot: () => ({ service: () => undefined }),
        health: { nodesCompared: (findings) => (found = findings) },
      },
      over.signal,
    )
    return { dataDir, watched, logs, found: () => found.map(({ text }) => text) }
  }
  /** Waits until both nodes have reported once more and wait for their next look, which `pass` begins. */
  const idle = () =>
    vi.waitFor(() => {
      expect(reported).toBe(2 * rounds)
      expect(clock.sleeping).toBe(2)
    })
  const pass = async (ms: number) => {
    await idle()
    rounds++
    await clock.advance(ms)
    await idle()
  }
  return { node, over, reports, idle, pass }
}

test('says what is not shared once it is seen twice, and no more when it is repaired', async () => {
  const { node, over, idle, pass, reports } = await arrange()
  const [a, b] = [node('a'), node('b')]
  mkdirSync(join(b.dataDir, 'sops/deploy'), { recursive: true })
  writeFileSync(join(b.dataDir, 'sops/deploy/SOP.toml'), 'x')
  await idle()
  expect([...a.found(), ...b.found()]).toEqual([])
  await pass(2_000)
  await pass(20_000)
  const expected = [
    expect.stringMatching(/^The folder of files is not the same on all nodes \(a \| b\): attachments and kept results/),
    'The procedures differ between nodes: a | b.',
  ]
  expect(a.found()).toEqual(expected)
  expect(b.found()).toEqual(expected)
  expect(reports.get('a')?.folders.map(({ name }) => name)).toEqual(['workspace', 'files', 'procedures', 'identity files'])

  mkdirSync(join(a.dataDir, 'sops/deploy'), { recursive: true })
  writeFileSync(join(a.dataDir, 'sops/deploy/SOP.toml'), 'x')
  await pass(20_000)
  await pass(20_000)
  expect(a.found()).toEqual([expected[0]])
  expect(a.logs.map(({ level, message }) => ({ level, message }))).toEqual([
    { level: 'error', message: expected[0] },
    { level: 'error', message: expected[1] },
    { level: 'info', message: 'This no longer holds.' },
  ])
  over.abort()
  await Promise.all([a.watched, b.watched])
})
