import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

interface Writer {
  apiTypes(document: object): string
  typeOf(schema: object): string
}

const script = join(resolve(import.meta.dirname, '../..'), 'scripts/api-types.mjs')
const { apiTypes, typeOf } = (await import(script)) as Writer

test.each([
  [{ type: 'string' }, 'string'],
  [{ type: 'string', pattern: '^x_' }, '`x_${' + 'string}`'],
  [{ const: "it's" }, "'it\\'s'"],
  [{ enum: ['a', 1, null] }, "'a' | 1 | null"],
  [{ anyOf: [{ type: 'number' }, { type: 'integer' }, { type: 'null' }] }, 'number | null'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } }, '(string | null)[]'],
  [{ type: 'array', prefixItems: [{ type: 'string' }, {}] }, '[string, unknown]'],
  [{ type: 'object', properties: { 'a-b': { type: 'boolean' }, c: {} }, required: ['c'] }, "{\n  'a-b'?: boolean\n  c: unknown\n}"],
  [{ type: 'object', additionalProperties: { type: 'number' } }, '{ [member: string]: number }'],
  [
    { allOf: [{ $ref: '#/components/schemas/Event' }, { type: 'object', properties: {} }] },
    "(components['schemas']['Event']) & (Record<string, never>)",
  ],
  [{}, 'unknown'],
])('the type of %j is %s', (schema, type) => {
  expect(typeOf(schema)).toBe(type)
})

test('a route has its parameters, its body and its answers', () => {
  const operation = {
    operationId: 'putX',
    summary: 'Ends a comment */ early',
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    requestBody: { content: { 'application/json': { schema: { type: 'number' } } } },
    responses: { 200: { description: 'Done', content: { 'text/plain': {} } }, default: { $ref: '#/components/responses/Error' } },
  }
  const text = apiTypes({ paths: { '/x/{id}': { put: operation } }, components: { schemas: { Error: { type: 'object' } } } })
  for (const part of ["'/x/{id}'", "put: operations['putX']", 'id: string', "'application/json': number", "'text/plain': string", 'early'])
    expect(text).toContain(part)
  expect(text.replace(/\/\*\*.*?\*\//gs, '')).not.toContain('early')
})
