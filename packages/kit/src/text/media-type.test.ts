import { describe, expect, test } from 'vitest'
import { attachmentKind, mediaType } from './media-type.ts'

test.each([
  ['image/png', 'image'],
  [' Audio/OGG; codecs=opus', 'audio'],
  ['video/mp4', 'video'],
  ['application/pdf', 'file'],
  ['images/png', 'file'],
  ['', 'file'],
])('attachmentKind(%j) is %j', (mime, kind) => {
  expect(attachmentKind(mime)).toBe(kind)
})

describe('mediaType', () => {
  test('returns the type in lower case, without parameters', () => {
    expect(mediaType(new Headers({ 'content-type': 'Image/JPEG; q=1' }))).toBe('image/jpeg')
  })

  test('returns undefined without a type', () => {
    expect([new Headers(), new Headers({ 'content-type': ' ;q=1' })].map(mediaType)).toEqual([undefined, undefined])
  })
})
