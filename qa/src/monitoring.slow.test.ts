/** Checks the alerts with promtool, and evaluates every expression of the dashboard in a Prometheus that scrapes a daemon. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { post, type RunningDaemon, scratch, startDaemon } from './daemons/bundle.ts'
import { debianProgram } from './debian-program.ts'
import { alertNames, dashboardExpressions, RULE_TESTS, RULES } from './monitoring.ts'

const promtool = await debianProgram({ packages: ['prometheus'], program: 'usr/bin/promtool' })
const prometheus = await debianProgram({ packages: ['prometheus'], program: 'usr/bin/prometheus' })
const why = 'missing' in promtool ? ` (skipped: ${promtool.missing})` : 'missing' in prometheus ? ` (skipped: ${prometheus.missing})` : ''
const LONG = 300_000

describe.skipIf('missing' in promtool)(`the alerts${why}`, () => {
  const check = (...args: string[]) => {
    if ('missing' in promtool) throw new Error(promtool.missing)
    return promisify(execFile)(promtool.path, args, { env: { ...process.env, ...promtool.env } })
  }

  test('are valid rules', { timeout: LONG }, async () => {
    expect((await check('check', 'rules', RULES)).stdout).toContain(`SUCCESS: ${alertNames().length} rules found`)
  })

  test('are raised by the figures of their tests, and by no others', { timeout: LONG }, async () => {
    expect((await check('test', 'rules', RULE_TESTS)).stdout).toContain('SUCCESS')
  })
})

/** Panels about work that this daemon does not have: procedures and approvals, and messages of channels. */
const EMPTY = ['Procedures and approvals', 'Deliveries a second']
/** The daemon starts once, so it has no later start to annotate. */
const NEVER = ['Starts']
const CONFIG = `
[gateway]
require_pairing = false
[provider]
kind = "offline"
[observability]
backends = ["textmetrics", "log"]
[channels_config.textrelay]
api_token = "token"
from_phone = "+15550001111"
signing_secret = "secret"
allowed_senders = ["*"]
`

describe.skipIf('missing' in prometheus)(`the dashboard${why}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'))
  const data = scratch(CONFIG)
  let daemon: RunningDaemon
  let server: ChildProcess
  let url: string

  beforeAll(async () => {
    daemon = await startDaemon('full', data.dir)
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const target = new URL(daemon.url).host
    const job = { job_name: 'sluice', static_configs: [{ targets: [target] }] }
    // JSON is YAML.
    writeFileSync(
      join(folder, 'prometheus.yml'),
      JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: [job], rule_files: [RULES] }),
    )
    if ('missing' in prometheus) return
    const args = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`]
    server = spawn(prometheus.path, args, { env: { ...process.env, ...prometheus.env }, stdio: 'ignore' })
    await vi.waitFor(() => scrapes(3), { timeout: LONG, interval: 500 })
    for (let count = 0; count < 3; count++) {
      await post(`${daemon.url}/webhook`, { message: '/tool file_list {"path":"."}' })
      await post(`${daemon.url}/textrelay`, { event: 'x' })
      await scrapes(2)
    }
  }, LONG)

  afterAll(async () => {
    for (const [kill, ended] of [
      [() => server?.kill('SIGKILL'), server && once(server, 'exit')],
      [() => daemon?.kill('SIGTERM'), daemon?.exited],
    ] as const) {
      kill()
      await ended
    }
    data.dispose()
    rmSync(folder, { recursive: true, force: true })
  }, LONG)

  /** Resolves to the samples of an instant query. */
  const query = async (expr: string): Promise<readonly { readonly value: readonly [number, string] }[]> => {
    const response = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query: expr })}`)
    const { status, error, data } = (await response.json()) as { status: string; error?: string; data: { result: [] } }
    if (status !== 'success') throw new Error(`${expr}: ${error}`)
    return data.result
  }
  /** Resolves once Prometheus has scraped the daemon this often from now on. */
  const scrapes = async (count: number): Promise<void> => {
    const scraped = async () => Number((await query('count_over_time(sluice_build_info[1h])'))[0]?.value[1] ?? 0)
    const before = await scraped()
    await expect.poll(() => scraped(), { timeout: LONG, interval: 250 }).toBeGreaterThanOrEqual(before + count)
  }
  const filledIn = (expr: string): string => expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '2m')

  test('shows figures in every panel', { timeout: LONG }, async () => {
    const results = await Promise.all(
      dashboardExpressions().map(async ({ panel, expr }) => ({ panel, expr, samples: (await query(filledIn(expr))).length })),
    )
    const empty = results.filter(({ samples }) => samples === 0)
    expect(empty.filter(({ panel }) => ![...EMPTY, ...NEVER].includes(panel))).toEqual([])
    expect([...new Set(empty.map(({ panel }) => panel))].toSorted()).toEqual([...EMPTY, ...NEVER].toSorted())
  })

  test('has alerts that are loaded without an error', { timeout: LONG }, async () => {
    const { data } = (await (await fetch(`${url}/api/v1/rules`)).json()) as {
      data: { groups: readonly { rules: readonly { name: string; lastError?: string }[] }[] }
    }
    const rules = data.groups.flatMap((group) => group.rules)
    expect(rules.map(({ name }) => name)).toEqual(alertNames())
    expect(rules.filter(({ lastError }) => lastError)).toEqual([])
  })
})

async function freePort(): Promise<number> {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  free.close()
  await once(free, 'close')
  return port
}
