import { Secret } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { bearer, isPathSegment, pathSegment, urlUnder } from './rest-request.ts'

test.each(['https://example.org/api', 'https://example.org/api//'])('puts a path below %s', (base) => {
  expect(urlUnder(base, '/messages')).toBe('https://example.org/api/messages')
})

test('authorizes with a token without the white space around it', () => {
  expect(bearer(new Secret(' token \n'))).toEqual({ authorization: 'Bearer token' })
})

test.each(['a/b', '../a', '..\\', '%2e%2e', '...', '?q', '#f', ' ', '\ud800', 'ü', ';x'])('%j stays one segment of a path', (id) => {
  const { pathname, search, hash } = new URL(urlUnder('https://example.org', `/rooms/${pathSegment(id)}/messages`))
  const [, rooms, segment = '', messages, ...more] = pathname.split('/')
  expect({ rooms, segment: decodeURIComponent(segment), messages, more, search, hash }).toEqual({
    rooms: 'rooms',
    segment: id.toWellFormed(),
    messages: 'messages',
    more: [],
    search: '',
    hash: '',
  })
})

test.each(['', '.', '..'])('%j is not a segment of a path', (id) => {
  expect(isPathSegment(id)).toBe(false)
  expect(() => pathSegment(id)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})
