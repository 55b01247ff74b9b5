import { answerOf, defineRoute, eventMembers } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { routesOf, type TestGateway, type TestGatewayOptions, testGateways } from '../testing.ts'

const gateway = testGateways()

interface Operation {
  readonly operationId: string
  readonly security?: unknown
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> }
  readonly responses: Record<string, object>
}

interface Answer {
  readonly content: Record<string, { readonly schema: { readonly properties: object } }>
}

async function documentOf(made: TestGateway) {
  const { token } = await made.pair()
  const response = await made.request('/api/openapi.json', { headers: { authorization: `Bearer ${token}` } })
  expect(response.status).toBe(200)
  return (await response.json()) as { openapi: string; servers: unknown; paths: Record<string, Record<string, Operation>> }
}

const withDocument = async (options: TestGatewayOptions = {}) => {
  const made = gateway(options)
  return { made, document: await documentOf(made) }
}

const room = defineRoute({
  method: 'POST',
  path: '/x/:room',
  summary: 'Speak in a room',
  auth: 'operator',
  query: v.object({ loud: v.string(), soft: v.optional(v.string()) }),
  body: v.object({ text: v.pipe(v.string(), v.maxLength(9)), count: v.optional(v.number(), 1) }),
  answers: { 200: { description: 'Said', schema: v.object({ id: v.string() }) } },
  handle: () => ({}),
})

test('the document has exactly the served routes, with streams and features', async () => {
  const { made, document } = await withDocument({ snapshot: { routes: [room] }, withStreams: true })
  const served = routesOf(made).map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(documented.toSorted()).toEqual(served.toSorted())
  for (const path of ['/api/events', '/ws/events', '/ws/chat']) expect(documented).toContain(`GET ${path}`)
  expect(documented).toContain('POST /x/{room}')
  expect(document.openapi).toBe('3.1.0')
})

test('an operation describes its input and its answers', async () => {
  const { document } = await withDocument({ snapshot: { routes: [room] } })
  const operation = document.paths['/x/{room}']?.post
  expect(operation?.security).toEqual([{ bearer: ['operator'] }])
  expect(operation?.parameters).toEqual([
    expect.objectContaining({ name: 'room', in: 'path', required: true }),
    expect.objectContaining({ name: 'loud', in: 'query', required: true }),
    expect.objectContaining({ name: 'soft', in: 'query', required: false }),
  ])
  expect(operation?.requestBody?.content['application/json']?.schema).toMatchObject({
    properties: { text: { type: 'string', maxLength: 9 } },
    required: ['text'],
  })
  expect(Object.keys(operation?.responses ?? {})).toEqual(['200', '401', '403', 'default'])
})

test('every operation has a unique id, and the document names the server', async () => {
  const { document } = await withDocument({ snapshot: { routes: [room] }, withStreams: true })
  const ids = Object.values(document.paths).flatMap((operations) => Object.values(operations).map(({ operationId }) => operationId))
  expect(ids).toContain('postXRoom')
  expect(ids).toContain('getApiOpenapiJson')
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]*$/)
  expect(new Set(ids).size).toBe(ids.length)
  expect(document.servers).toEqual([{ url: '/' }])
  const behind = await withDocument({ config: { public_url: 'https://sluice.example.org' } })
  expect(behind.document.servers).toEqual([{ url: 'https://sluice.example.org' }])
})

test('an open route needs no token, and the webhook lists its headers', async () => {
  const { document } = await withDocument()
  expect(document.paths['/health']?.get?.security).toEqual([])
  expect(document.paths['/webhook']?.post?.parameters.map(({ name }) => name)).toContain('X-Idempotency-Key')
})

test('a route for this machine documents 403', async () => {
  const { document } = await withDocument({ withStreams: true })
  const operation = document.paths['/api/channel-events']?.post
  expect([operation?.security, Object.keys(operation?.responses ?? {})]).toEqual([[], ['200', '403', 'default']])
})

test('answers have the documented members', async () => {
  const { made, document } = await withDocument()
  const schemaOf = (path: string) => {
    const ok = document.paths[path]?.get?.responses['200'] as Answer | undefined
    return ok?.content['application/json']?.schema
  }
  const { token } = await made.pair()
  for (const path of [
    '/health',
    '/ready',
    '/api/status',
    '/api/health',
    '/api/tools',
    '/api/features',
    '/api/devices',
    '/api/sessions',
    '/api/events/history',
  ]) {
    const answer = (await (await made.request(path, { headers: { authorization: `Bearer ${token}` } })).json()) as object
    expect(Object.keys(answer).toSorted(), path).toEqual(Object.keys(schemaOf(path)?.properties ?? {}).toSorted())
  }
})

test('the document has the schema of every event', async () => {
  const { made } = await withDocument({ withStreams: true })
  const { token } = await made.pair()
  const response = await made.request('/api/openapi.json', { headers: { authorization: `Bearer ${token}` } })
  const { components, paths } = (await response.json()) as {
    components: { schemas: { Event: { anyOf: [{ oneOf: { properties: { type: { const: string } }; description: string }[] }, object] } } }
    paths: Record<string, { get: { responses: Record<string, { description: string }> } }>
  }
  const [known] = components.schemas.Event.anyOf
  expect(known.oneOf.map(({ properties }) => properties.type.const)).toEqual(eventMembers().map(({ type }) => type))
  expect(paths['/api/events']?.get.responses['200']?.description).toContain('#/components/schemas/Event')
})

test('an answer that contains the answer of another route has the schema of that route', async () => {
  const both = defineRoute({
    method: 'GET',
    path: '/x/both',
    summary: 'Two answers together',
    auth: 'operator',
    answers: { 200: { description: 'Both', schema: v.object({ costs: answerOf('/api/costs'), nothing: answerOf('/api/nothing') }) } },
    handle: () => ({}),
  })
  const { document } = await withDocument({ snapshot: { routes: [both] } })
  const schemaOf = (path: string) => {
    const answer = document.paths[path]?.get?.responses[200] as Answer
    return answer.content['application/json']?.schema as { properties: Record<string, object> }
  }
  const { properties } = schemaOf('/x/both')
  expect(properties.costs).toEqual(schemaOf('/api/costs'))
  expect(properties.nothing).toMatchObject({ type: 'object' })
})
