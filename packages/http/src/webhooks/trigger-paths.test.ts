import { createPathRule, OWN_POST_ROUTES } from '@sluice/runtime'
import { ROWS } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()

test('a trigger may name no POST route of the daemon except /webhook', async () => {
  const { pair, request } = gateway({ withStreams: true })
  const { token } = await pair()
  const response = await request('/api/openapi.json', { headers: { authorization: `Bearer ${token}` } })
  const { paths } = (await response.json()) as { paths: Record<string, object> }
  const posts = Object.entries(paths).flatMap(([path, methods]) => ('post' in methods ? path.replace(/\{(\w+)\}/g, ':$1') : []))
  expect(posts.toSorted()).toEqual([...OWN_POST_ROUTES, '/webhook'].toSorted())
})

test.each(['/pair', '/api/sops/deploy/runs', '/api/channel-events', '/api/webauthn/register/start'])(
  'a trigger on %s is refused, whatever the configuration is',
  (path) => {
    for (const takeOver of [false, true]) expect(createPathRule(takeOver)(path)).toContain('would never fire')
  },
)

test('a trigger on a path of agent messages needs [sop] take_over', () => {
  const channels = ROWS.filter(([, { kind }]) => kind === 'channel').flatMap(([, { routes = [] }]) => routes)
  const paths = ['/webhook', ...channels.flatMap((route) => (route.startsWith('POST ') ? route.slice(5) : []))]
  expect(paths).toContain('/chatapp')
  for (const path of paths) {
    expect(createPathRule(false)(path), path).toContain('[sop] take_over = true')
    expect(createPathRule(true)(path), path).toBeUndefined()
  }
})

test.each(['/deploy', '/pair/', '/api/sops', '/api/sops/a/b/runs', '/health', '/webhooks', '/a.b'])('a trigger may name %s', (path) => {
  expect(createPathRule(false)(path)).toBeUndefined()
})
