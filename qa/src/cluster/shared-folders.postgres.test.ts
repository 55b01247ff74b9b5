/** Three daemons of which one sees other folders than the others: each of them says so. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterStatus, Status } from '@sluice/http/answers'
import { afterEach, expect, test } from 'vitest'
import { environment } from '../daemons/bundle.ts'
import { programOfNodes, startCluster } from './test-cluster.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})

const read = async <Answer>(url: string | undefined, path: string): Promise<Answer> =>
  (await (await fetch(`${url}${path}`)).json()) as Answer

const command = (dataDir: string, ...args: string[]): Promise<string> =>
  new Promise((resolve, reject) =>
    execFile(process.execPath, [programOfNodes(), ...args, '--data-dir', dataDir], { env: environment() }, (error, out) =>
      error ? reject(error) : resolve(out),
    ),
  )

test('nodes name the one whose folders are others, and the MCP programs of each', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-folders-'))
  undo.push(() => rmSync(dir, { recursive: true, force: true }))
  mkdirSync(join(dir, 'files'))
  for (const name of ['node-1', 'node-2', 'node-3']) {
    mkdirSync(join(dir, name, 'sops/deploy'), { recursive: true, mode: 0o700 })
    writeFileSync(join(dir, name, 'sops/deploy/SOP.md'), name === 'node-3' ? 'new' : 'old')
    if (name !== 'node-3') symlinkSync(join(dir, 'files'), join(dir, name, 'files'))
  }
  const cluster = await startCluster({
    nodes: 3,
    dir,
    toml: `[gateway]
port = 0
require_pairing = false
[provider]
kind = "offline"
[agent]
workspace = "${join(dir, 'workspace')}"
[mcp.servers.notes]
command = "${join(dir, 'missing')}"
`,
  })
  undo.push(() => cluster.close())
  const [first] = cluster.nodes
  const texts = [
    'The folder of files is not the same on all nodes (node-1, node-2 | node-3): attachments and kept results that one node saves are missing on others.',
    'The procedures differ between nodes: node-1, node-2 | node-3.',
  ]
  for (const node of cluster.nodes) {
    await expect
      .poll(async () => (await read<ClusterStatus>(node.url, '/api/cluster')).problems.map(({ text }) => text), { timeout: 30_000 })
      .toEqual(texts)
    await expect
      .poll(
        async () =>
          (await read<Status>(node.url, '/api/status')).problems.flatMap(({ about, state, text }) =>
            about === 'cluster' ? [`${state} ${text}`] : [],
          ),
        { timeout: 40_000 },
      )
      .toEqual(texts.map((text) => `failing ${text}`))
    for (const text of texts) expect(node.log).toContain(text)
  }
  const out = await command(first.dataDir, 'cluster', 'status')
  for (const text of texts) expect(out).toContain(`failing: ${text} To repair it: `)
  expect(out).toMatch(/^MCP programs of node-2: notes \((?:idle|1 running)\)$/m)
  expect(JSON.parse(await command(first.dataDir, 'cluster', 'status', '--json'))).toMatchObject({
    nodes: [{ node: 'node-1', programs: [{ server: 'notes' }], folders: [{ name: 'workspace', problem: null }, {}, {}, {}, {}] }, {}, {}],
  })
}, 120_000)
