/** `docs/metrics.md` and the metrics that a running daemon serves. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { parseTextMetrics } from '@sluice/testkit/text-metrics'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { always } from '../../profiles/always.ts'
import { post, ROOT } from './daemons/bundle.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-metrics-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

/** The rows of the table on the page: name, type and labels. */
const documented = (): Map<string, { readonly type: string; readonly labels: readonly string[] }> => {
  const page = readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*) \|/gm)]
  return new Map(rows.map(([, name = '', type = '', labels = '']) => [name, { type, labels: labels.match(/\w+/g) ?? [] }]))
}

/** A channel that needs no server, for the state of channels. */
const CONFIG = `
[gateway]
require_pairing = false
[log]
level = "error"
[observability]
backends = ["textmetrics"]
[channels_config.textrelay]
api_token = "token"
from_phone = "+15550001111"
allowed_senders = ["*"]
`

test('docs/metrics.md lists the metrics of a running daemon, with their types and labels', { timeout: 60_000 }, async () => {
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, CONFIG, { mode: 0o600 })
  const features = [...always]
  const daemon = await startDaemon({
    features,
    dataDir,
    configFile,
    env: {},
    profile: 'test',
    version: '1.2.3',
    host: '127.0.0.1',
    port: 0,
  })
  try {
    expect(await post(`${daemon.url}/webhook`, { message: '/tool file_list {"path":"."}' })).toMatchObject({ status: 200 })
    const { types, values } = parseTextMetrics(await (await fetch(`${daemon.url}/metrics`)).text())
    const page = documented()
    const isHere = (name: string) => process.platform === 'linux' || name !== 'process_open_fds'
    expect([...types.keys()].toSorted()).toEqual([...page.keys()].filter(isHere).toSorted())
    for (const [name, type] of types) expect({ name, type }).toEqual({ name, type: page.get(name)?.type })

    const labelsOf = (series: string) => [...series.matchAll(/(\w+)="/g)].map(([, label = '']) => label).filter((label) => label !== 'le')
    for (const series of values.keys()) {
      const name = series.replace(/\{.*/, '')
      const row = page.get(name) ?? page.get(name.replace(/_(?:bucket|sum|count)$/, ''))
      expect({ series, labels: labelsOf(series).toSorted() }).toEqual({ series, labels: row?.labels.toSorted() })
    }
    expect(Object.fromEntries(values)).toMatchObject({
      'sluice_build_info{version="1.2.3",profile="test"}': 1,
      'sluice_channel_state{channel="textrelay",state="ok"}': 1,
      'sluice_dead_letters{queue="inbox"}': 0,
      'sluice_dead_letters{queue="outbox"}': 0,
      sluice_approvals_pending: 0,
      sluice_store_failing: 0,
      'sluice_tool_calls_total{tool="file_list",outcome="ok"}': 1,
    })
  } finally {
    await daemon.stop()
  }
})
