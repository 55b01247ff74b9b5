import { AppError, type Inbound } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { parse as parseRaw, recipientOf } from './parse.ts'

const parseBytes = (body: Uint8Array): Inbound[] => parseRaw({ body }, { account: 'account-1' })
const parse = (json: unknown): Inbound[] => parseBytes(new TextEncoder().encode(JSON.stringify(json)))

const event = (changes: object = {}) => ({
  id: 'id-1',
  whatsappMessageId: 'wamid.1',
  type: 'text',
  text: 'hi',
  eventType: 'message',
  waId: '15550002222',
  owner: false,
  ...changes,
})

test('drops our own messages in every form of the payload', () => {
  for (const own of [{ owner: true }, { fromMe: true }, { from_me: true }, { owner: 'true' }, { owner: 'True' }])
    expect(parse(event(own))).toEqual([])
})

test('describes a kind without a text by its words, of which there are only so many', () => {
  const rows = Array.from({ length: 99 }, (_, index) => ({ name: `${index} ${'x'.repeat(999)}` }))
  const [{ things = [] } = {}] = parse(event({ type: 'order', text: null, data: { rows, deep: [[[[[['lost']]]]]] } })) as Inbound[]
  expect(things).toMatchObject([{ kind: 'unknown', text: expect.stringMatching(/^order, 0 x+, 1 x/) }])
  expect(things[0]?.text.split(', ')).toHaveLength(21)
})

test('keeps a message whose owner flag is not true', () => {
  for (const theirs of [{ owner: 'false' }, { owner: null }, { owner: '' }, { fromMe: 0 }, { owner: { toString: 1 } }])
    expect(parse(event(theirs))).toHaveLength(1)
})

test.each([
  ['button', { buttonReply: { payload: '{"a":1}', text: 'Yes' } }, 'Yes'],
  ['interactive', { interactiveButtonReply: { id: 'b1', title: 'Change' } }, 'Change'],
  ['interactive', { listReply: { id: 'r1', title: 'Monday', description: '9 to 5' } }, 'Monday'],
])('the text of a tap of type %s is the title of the button or row', (type, reply, text) => {
  const none = { buttonReply: null, listReply: null, interactiveButtonReply: null }
  expect(parse(event({ type, text: null, ...none, ...reply }))).toMatchObject([{ text }])
})

test.each([
  ['report.pdf', { name: 'report.pdf' }, ''],
  ['My report (2).PDF', { name: 'My report (2).PDF' }, ''],
  ['Please read this.', { name: '9b1c.pdf' }, 'Please read this.'],
  ['See notes.txt', { name: '9b1c.pdf' }, 'See notes.txt'],
  ['../../etc/x.pdf', { name: '9b1c.pdf' }, '../../etc/x.pdf'],
  [null, { name: '9b1c.pdf' }, ''],
])('the text %j of a document is its file name or its caption', (text, attachment, said) => {
  const data = 'https://h.example/api/file/showFile?fileName=data/documents/9b1c.pdf'
  expect(parse(event({ type: 'document', text, data }))).toMatchObject([{ text: said, attachments: [attachment] }])
})

test('ignores other events', () => {
  for (const eventType of ['sessionMessageSent', 'sentMessageDELIVERED', 'templateMessageSent', 'newContactMessageReceived', '', null, 7]) {
    expect(parse(event({ eventType }))).toEqual([])
  }
})

test('drops a message without text or media', () => {
  for (const empty of [{ text: '' }, { text: null }, { text: ' \n' }]) {
    expect(parse(event(empty))).toEqual([])
  }
})

test.each([
  ['id', { whatsappMessageId: null }, { id: 'id-1' }],
  ['sender', { waId: null, wa_id: '15550004444' }, { sender: '+15550004444' }],
  ['sender', { waId: '', from: '15550005555' }, { sender: '+15550005555' }],
  ['text', { text: null, message: { text: 'one' } }, { text: 'one' }],
  ['text', { text: null, message: { body: 'two' } }, { text: 'two' }],
  [
    'media',
    { type: 'voice', data: null, media_url: 'https://h.example/v' },
    { attachments: [{ kind: 'audio', name: 'voice.ogg', source: { url: 'https://h.example/v' } }] },
  ],
  ['account', {}, { account: 'account-1' }],
])('finds the %s under its other names: %j', (_field, changes, found) => {
  expect(parse(event(changes))[0]).toMatchObject(found)
})

test('rejects a message without an id or a sender', () => {
  for (const broken of [event({ id: null, whatsappMessageId: '' }), event({ waId: null }), event({ waId: '()' })]) {
    expect(() => parse(broken)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  }
})

test('rejects a body that is not a JSON object', () => {
  for (const body of ['', '[]', 'null', '"x"', '{']) {
    expect(() => parseBytes(new TextEncoder().encode(body))).toThrow(new AppError('invalid_request', 'Invalid JSON payload'))
  }
})

test('treats recordings as audio, so that they can be transcribed', () => {
  const kinds = ['audio', 'voice', 'image', 'sticker', 'video', 'document'].map((type) => {
    const data = 'https://h.example/api/file/showFile?fileName=data/x/a%20b.pdf'
    return parse(event({ type, data }))[0]?.attachments?.map(({ kind, name }) => [kind, name])[0]
  })
  expect(kinds).toEqual(['audio', 'audio', 'image', 'image', 'video', 'file'].map((kind) => [kind, 'a b.pdf']))
})

test('uses the last segment as the file name if it has an extension', () => {
  const nameOf = (data: string) => parse(event({ type: 'document', data }))[0]?.attachments?.[0]?.name
  expect(nameOf('https://h.example/files/report.docx?x=1')).toBe('report.docx')
  expect(nameOf('https://h.example/?fileName=..%2F..%2Fetc%5Cpasswd.txt')).toBe('passwd.txt')
  for (const url of ['https://h.example/files/1', 'https://h.example/', 'https://h.example/.env', 'no url'])
    expect(nameOf(url)).toBe('document')
  expect(nameOf(`https://h.example/${'n'.repeat(999)}.pdf`)).toHaveLength(255)
})

test.each([
  ['1767225600', 1_767_225_600_000],
  [1767225600, 1_767_225_600_000],
  ['1767225600123', 1_767_225_600_123],
  [1767225600123, 1_767_225_600_123],
  [1767225600.5, 1_767_225_600_500],
  ['2026-01-01T00:00:00.1234567Z', 1_767_225_600_123],
])('reads the time %j as %d', (timestamp, ms) => {
  expect(parse(event({ timestamp }))[0]?.sentAtMs).toBe(ms)
})

test('falls back to the second time, else omits the time', () => {
  for (const timestamp of [undefined, null, '', 'soon', 0, -5, {}, 1e300]) {
    expect(parse(event({ timestamp, created: '2026-01-01T00:00:00Z' }))[0]?.sentAtMs).toBe(1_767_225_600_000)
    expect(parse(event({ timestamp }))[0]).not.toHaveProperty('sentAtMs')
  }
})

test.each([
  ['15550002222', '+15550002222'],
  ['+1 (555) 000-2222', '+15550002222'],
  [' 15550002222 ', '+15550002222'],
  ['US.15550002222', 'US.15550002222'],
  ['a15550002222', 'a15550002222'],
  ['１５５５０００２２２２', '１５５５０００２２２２'],
])('the sender %j becomes %j', (waId, sender) => {
  expect(parse(event({ waId }))[0]?.sender).toBe(sender)
  expect(parse(event({ waId: sender }))[0]?.sender).toBe(sender)
})

test('a recipient is a sender without its plus', () => {
  expect([recipientOf('+15550002222'), recipientOf('US.1')]).toEqual(['15550002222', 'US.1'])
})
