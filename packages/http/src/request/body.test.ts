/** Bodies of requests: their bytes, and the JSON in them. */

import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { processorMs } from '@sluice/testkit/processor-time'
import { describe, expect, test } from 'vitest'
import { testGateways } from '../testing.ts'
import { readIncoming } from './body.ts'

const gateway = testGateways()

async function post(body: string | Uint8Array, headers: Record<string, string> = {}) {
  const made = gateway()
  const { token } = await made.pair()
  const startedAtMs = processorMs()
  const response = await made.request('/webhook', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body,
  })
  return { response, tookMs: processorMs() - startedAtMs, turns: made.turns, logs: made.logs }
}

const NEST = 10_000

describe('a body that is not a JSON object with a message is 400 with the reason', () => {
  test.each<[string, string | Uint8Array, string]>([
    ['nothing', '', 'empty'],
    ['white space', '  ', 'JSON'],
    ['a cut object', '{"message":"x"', 'JSON'],
    ['a trailing comma', '{"message":"x",}', 'JSON'],
    ['two objects', '{"message":"x"}{"message":"y"}', 'JSON'],
    ['a comment', '{"message":"x"/* */}', 'JSON'],
    ['single quotes', "{'message':'x'}", 'JSON'],
    ['NaN', '{"message":"x","n":NaN}', 'JSON'],
    ['a raw newline in a string', '{"message":"a\nb"}', 'JSON'],
    ['a byte order mark', '\ufeff{"message":"x"}', 'JSON'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), 'UTF-8'],
    ['half of a UTF-8 character', Buffer.from('{"message":"é"}').subarray(0, 13), 'UTF-8'],
    ['a surrogate in UTF-8', Buffer.from('7b226d657373616765223a22eda080227d', 'hex'), 'UTF-8'],
    ['UTF-16', Buffer.from('{"message":"x"}', 'utf16le'), 'JSON'],
    ['an array', '["message"]', 'object'],
    ['a text', '"message"', 'object'],
    ['a number', '17', 'object'],
    ['null', 'null', 'object'],
    ['no message', '{}', 'message'],
    ['a message only __proto__ has', '{"__proto__":{"message":"x"}}', 'message'],
    ['a message in another case', '{"Message":"x"}', 'message'],
    ['a number as message', '{"message":5}', 'message'],
    ['a huge number as message', '{"message":1e999}', 'message'],
    ['null as message', '{"message":null}', 'message'],
    ['a list as message', '{"message":["x"]}', 'message'],
    ['an object as message', '{"message":{"toString":"x"}}', 'message'],
    ['an empty message', '{"message":""}', 'empty'],
    ['a later message of another type', '{"message":"x","message":1}', 'message'],
    ['half of a surrogate pair', '{"message":"\\ud83d"}', 'surrogate'],
    ['ten thousand nested lists', `{"message":${'['.repeat(NEST)}${']'.repeat(NEST)}}`, 'nested'],
    ['ten thousand nested objects', `${'{"a":'.repeat(NEST)}1${'}'.repeat(NEST)}`, 'nested'],
    ['nested lists that never end', '['.repeat(65_000), 'nested'],
    ['a form', 'message=x', 'JSON'],
  ])('%s', async (_what, body, reason) => {
    const { response, tookMs, turns, logs } = await post(body)
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ error: expect.stringContaining(reason), code: 'invalid_request' })
    expect(tookMs).toBeLessThan(2000)
    expect(turns).toEqual([])
    expect(logs).toEqual([])
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonp', 'application/json+x', ''])(
    'the Content-Type %j',
    async (type) => {
      const { response } = await post('{"message":"x"}', { 'content-type': type })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: 'The Content-Type must be application/json' })
    },
  )
})

test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8'])(
  'the Content-Type %s is taken',
  async (type) => {
    expect((await post('{"message":"x"}', { 'content-type': type })).response.status).toBe(200)
  },
)

test.each<[string, string]>([
  ['brackets and quotes inside texts', String.raw`{"message":"[{\"\\\"[[[","x":"${'[{'.repeat(200)}"}`],
  ['as many levels as are allowed', `{"message":"x","y":${'['.repeat(63)}${']'.repeat(63)}}`],
  ['many objects side by side', `{"message":"x","y":[${Array(2000).fill('{}').join()}]}`],
  ['characters of every length', '{"message":"a é € 😀"}'],
  ['escaped surrogate pairs', String.raw`{"message":"\ud83d\ude00"}`],
])('%s are taken', async (_what, body) => {
  expect((await post(body)).response.status).toBe(200)
})

test('a body of exactly 65,536 bytes is taken and one byte more is 413, announced or not', async () => {
  const bodyOf = (bytes: number) => JSON.stringify({ message: 'x'.repeat(bytes - 14) })
  expect(Buffer.byteLength(bodyOf(65_536))).toBe(65_536)
  expect((await post(bodyOf(65_536))).response.status).toBe(200)
  for (const headers of [{}, { 'content-length': '' }] as Record<string, string>[]) {
    const { response, turns } = await post(bodyOf(65_537), headers)
    expect(response.status).toBe(413)
    expect(await response.json()).toEqual({ error: 'The body is larger than 65536 bytes', code: 'too_large' })
    expect(turns).toEqual([])
  }
})

const request = () => Object.assign(new EventEmitter(), { destroyed: false, readableEnded: false })

test('an unfinished body in one-byte pieces takes at most three times its bytes', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const taken = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const incoming = request()
  const bytes = 2 * 1024 * 1024
  const before = taken()
  const body = readIncoming(incoming as unknown as IncomingMessage, bytes)
  for (let n = 0; n < bytes; n++) incoming.emit('data', Buffer.alloc(1))
  const after = taken()
  incoming.emit('end')
  expect(after - before).toBeLessThan(3 * bytes)
  return expect(body).resolves.toHaveLength(bytes)
})
