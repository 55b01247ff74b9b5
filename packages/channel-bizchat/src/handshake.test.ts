import { expect, test } from 'vitest'
import { answerHandshake, handshakeQuery } from './handshake.ts'

const ask = async (query: string) => {
  const response = answerHandshake(new URL(`http://localhost/bizchat${query}`))
  return [response.status, await response.text(), response.headers.get('content-type')]
}
const PLAIN = 'text/plain; charset=utf-8'

test('§4.2 the challenge goes back as plain text, whatever is in it', async () => {
  expect(await ask('?hub.challenge=12345')).toEqual([200, '12345', PLAIN])
  expect(await ask('?hub.challenge=%3Cb%3E%2B%3C/b%3E')).toEqual([200, '<b>+</b>', PLAIN])
})

test('§4.2 without a challenge the answer is 400', async () => {
  for (const query of ['', '?hub.challenge=', '?challenge=1']) expect(await ask(query)).toEqual([400, 'Missing hub.challenge', PLAIN])
})

test('the check of the provider passes', async () => {
  expect(await ask(`?${new URLSearchParams(handshakeQuery('a&b'))}`)).toEqual([200, 'a&b', PLAIN])
})
