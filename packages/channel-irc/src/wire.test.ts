import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LineSplitter, parseLine, tagText } from './wire.ts'

describe('parseLine', () => {
  test('reads tags, source, command and parameters', () => {
    const line = parseLine(String.raw`@time=2026-01-01T00:00:00.000Z;+x=a\:b\s\\ :ada!u@host PRIVMSG  #ops :hello  world`)
    expect(line).toEqual({
      tags: new Map([
        ['time', '2026-01-01T00:00:00.000Z'],
        ['+x', 'a;b \\'],
      ]),
      nick: 'ada',
      source: 'ada!u@host',
      command: 'PRIVMSG',
      params: ['#ops', 'hello  world'],
    })
  })

  test('reads the prompt of SASL also when it has a time and a colon', () => {
    expect(parseLine('@time=x AUTHENTICATE :+')).toMatchObject({ command: 'AUTHENTICATE', params: ['+'] })
  })

  test.each(['', ' ', '@a=b', ':source', '@a=b :source'])('finds no command in %j', (line) => {
    expect(parseLine(line)).toBeUndefined()
  })

  test('takes any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parseLine(text)))
    fc.assert(fc.property(fc.array(fc.constantFrom('@', ':', ' ', ';', '=', '\\', 'a', '!')), (text) => void parseLine(text.join(''))))
  })

  test('reads back each tag that it writes', () => {
    fc.assert(fc.property(fc.string(), (value) => parseLine(`${tagText({ key: value })}X`)?.tags.get('key') === value))
  })
})

describe('LineSplitter', () => {
  test('finds the same lines in pieces of any size, and cuts no character', () => {
    const bytes = Buffer.from('PING :ä\r\nPRIVMSG a :😀\nrest')
    for (let size = 1; size < bytes.length; size += 1) {
      const splitter = new LineSplitter()
      const lines: string[] = []
      for (let at = 0; at < bytes.length; at += size) lines.push(...(splitter.take(bytes.subarray(at, at + size)) ?? []))
      expect(lines).toEqual(['PING :ä', 'PRIVMSG a :😀'])
    }
  })

  test('reads a line that is not UTF-8 as Latin-1', () => {
    const bytes = Buffer.concat([Buffer.from('PRIVMSG a :gr\u00fcn l\u00e4uft\r\n', 'latin1'), Buffer.from('PRIVMSG a :grün\r\n')])
    expect(new LineSplitter().take(bytes)).toEqual(['PRIVMSG a :grün läuft', 'PRIVMSG a :grün'])
  })

  test('refuses a line without an end', () => {
    expect(new LineSplitter().take(Buffer.alloc(40_000, 'x'))).toBeUndefined()
  })
})
