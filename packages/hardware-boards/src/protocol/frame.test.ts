import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readFrame } from './frame.ts'

describe('readFrame', () => {
  test.each([
    ['{"id":"7","ok":true,"result":"1"}', { kind: 'reply', id: '7', ok: true, value: '1', error: '' }],
    ['{"id":7,"ok":false,"error":"Invalid\\u0007pin"}', { kind: 'reply', id: '7', ok: false, value: undefined, error: 'Invalid pin' }],
    ['{"ok":true,"data":{"value":1}}', { kind: 'reply', id: null, ok: true, value: { value: 1 }, error: '' }],
    ['{"event":"button","value":1}', { kind: 'signal', signal: 'button', value: 1 }],
    ['{"id":"1","cmd":"ping","args":{}}', { kind: 'echo' }],
    ['\u0000\u0001xx{"id":"7","ok":true,"result":"1"}', { kind: 'reply', id: '7', ok: true, value: '1', error: '' }],
    ['{"id":"6","ok":tr{"id":"7","ok":true,"result":"1"}', { kind: 'reply', id: '7', ok: true, value: '1', error: '' }],
  ])('reads %s', (line, frame) => {
    expect(readFrame(line)).toEqual(frame)
  })

  test.each(['', '{', '[1]', 'null', '{"ok":"yes"}', '{"event":"a/b"}', '{"event":""}', '>>> print(1)', '{"id":"1"}'])(
    'reads %j as noise',
    (line) => {
      expect(readFrame(line).kind).toBe('noise')
    },
  )

  test('reads any line without an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `{"${json}`),
        ),
        (line) => readFrame(line).kind !== undefined,
      ),
    )
  })
})
