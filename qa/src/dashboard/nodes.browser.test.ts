/** The nodes of the dashboard in a real cluster: two daemons of a built bundle on one PostgreSQL. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startCluster, type TestCluster } from '../cluster/test-cluster.ts'
import { bundle, ROOT, run } from '../daemons/bundle.ts'
import { expectHarmless, spoilAnswers } from './hostile.ts'
import { buildWith, foundChromium, launchChromium, watchedPage, whySkipped } from './page-daemon.ts'
import { seriousFaults } from './serious-faults.ts'

const SOON = { timeout: 30_000 }
const BUILD = 'dashboard-cluster'
const SHARDS = 256

/** The package of the server is optional, since it is there for some systems only. */
const isPostgresThere = (() => {
  try {
    return Boolean(import.meta.resolve('@sluice/store-postgres/testing/postgres-server'))
  } catch {
    return false
  }
})()

interface Shown {
  readonly unowned_shards: number
  readonly nodes: readonly { readonly node: string; readonly state: string; readonly shards: number }[]
}

describe.skipIf('missing' in foundChromium || !isPostgresThere)(`the nodes on the dashboard${whySkipped}`, () => {
  let cluster: TestCluster
  let browser: Browser

  beforeAll(async () => {
    buildWith('store-postgres', BUILD)
    cluster = await startCluster({ program: bundle(BUILD), toml: '[provider]\nkind = "offline"\n' })
    browser = await launchChromium()
  }, 300_000)
  afterAll(async () => {
    await browser?.close()
    await cluster?.close()
  })

  const open = async (options: BrowserContextOptions = {}) => {
    const [node] = cluster.nodes
    const { stdout, stderr } = await run(BUILD, ['dashboard', '--json', '--data-dir', node.dataDir])
    if (!stdout.includes('url')) throw new Error(`No link: ${stderr}`)
    const { url } = JSON.parse(stdout) as { url: string }
    const context = await browser.newContext({ viewport: { width: 1000, height: 600 }, bypassCSP: true, ...options })
    const watched = await watchedPage(context, url)
    await watched.page.goto(url)
    await watched.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor(SOON)
    await watched.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Nodes' }).click(SOON)
    await watched.page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor(SOON)
    return watched
  }
  const row = (page: Page, node: string) => page.getByRole('table', { name: 'Nodes' }).getByRole('row').filter({ hasText: node })
  const shown = (page: Page): Promise<Shown> => page.evaluate<Shown>("fetch('api/cluster').then((answer) => answer.json())")
  const shards = async (page: Page) => {
    const { nodes, unowned_shards } = await shown(page)
    return { unowned_shards, ...Object.fromEntries(nodes.map(({ node, shards }) => [node, shards])) }
  }

  test('the nodes are listed with their shards, and look well in light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, faults } = await open({ colorScheme })
      await expect.poll(() => shards(page), SOON).toMatchObject({ unowned_shards: 0, 'node-1': SHARDS / 2, 'node-2': SHARDS / 2 })
      await row(page, 'node-2').getByText('up', { exact: true }).waitFor(SOON)
      await expect
        .poll(
          () =>
            row(page, 'node-2')
              .getByText(String(SHARDS / 2), { exact: true })
              .count(),
          SOON,
        )
        .toBe(1)
      expect(await seriousFaults(page)).toEqual([])
      if (process.env.SLUICE_SCREENSHOTS === '1') {
        mkdirSync(join(ROOT, 'docs/images/dashboard'), { recursive: true })
        await page.screenshot({ path: join(ROOT, `docs/images/dashboard/nodes-${colorScheme}.png`) })
      }
      await page.setViewportSize({ width: 380, height: 720 })
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      expect(faults).toEqual([])
      await page.context().close()
    }
  })

  test('the words of a node about itself stay text', async () => {
    const { page, faults } = await open()
    await spoilAnswers(page, '**/api/cluster')
    await page.reload()
    await row(page, 'node-1').first().waitFor(SOON)
    await expectHarmless(page, 'nodes')
    expect(faults).toEqual([])
    await page.context().close()
  })

  test('a node is drained and works again, and a killed one is shown as dead while its shards move', async () => {
    const { page, faults } = await open()
    await row(page, 'node-2').getByRole('button', { name: 'Drain' }).click(SOON)
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
    await row(page, 'node-2').getByText('drained', { exact: true }).waitFor(SOON)
    await expect.poll(() => shards(page), SOON).toMatchObject({ unowned_shards: 0, 'node-1': SHARDS, 'node-2': 0 })
    await row(page, 'node-2').getByRole('button', { name: 'Let it work' }).click()
    await row(page, 'node-2').getByText('up', { exact: true }).waitFor(SOON)
    await expect.poll(async () => (await shown(page)).nodes.find(({ node }) => node === 'node-2')?.shards, SOON).toBe(SHARDS / 2)
    await cluster.nodes[1]?.end('SIGKILL')
    await row(page, 'node-2').getByText('dead', { exact: true }).waitFor({ timeout: 60_000 })
    await expect.poll(() => shards(page), { timeout: 60_000 }).toMatchObject({ unowned_shards: 0, 'node-1': SHARDS })
    expect(faults).toEqual([])
    await page.context().close()
  }, 240_000)
})
