/** Checks nginx and Caddy in front of a daemon, configured as the guides say. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'
import { readGuides } from './guide.ts'
import { prepareGuide, runGuide } from './run-guide.ts'

const GUIDE_MS_MAX = 300_000
/** Runs after the commands of the guide, in the same shell, in which `TOKEN` is set. The addresses represent the proxy and two clients. */
const CHECK = `
for address in 198.51.100.1 203.0.113.7 203.0.113.8; do ip address add $address/32 dev lo; done
echo '198.51.100.1 agent.example.com' >>/etc/hosts
node '${join(ROOT, 'qa/src/testing/check-proxy.mjs')}' "$TOKEN"
`

const guides = readGuides().filter(({ name }) => name.startsWith('reverse-proxy-'))
const prepared = await Promise.all(guides.map(prepareGuide))

describe('a proxy passes on TLS, events, WebSockets, bodies and client addresses', () => {
  test('as two guides configure it', () => {
    expect(guides.map(({ name }) => name)).toEqual(['reverse-proxy-caddy.md', 'reverse-proxy-nginx.md'])
  })

  for (const { guide, packages, missing } of prepared) {
    const why = missing === undefined ? '' : ` (skipped: ${missing})`
    test.skipIf(missing !== undefined)(`${guide.name}${why}`, { timeout: GUIDE_MS_MAX }, async () => {
      const checked = { ...guide, blocks: [...guide.blocks, { language: 'sh', text: CHECK, line: 0 }] }
      await runGuide({ guide: checked, packages }, GUIDE_MS_MAX - 10_000)
    })
  }
})
