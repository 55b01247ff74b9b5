import { describe, expect, test } from 'vitest'
import { titleOf, toMarkdown } from './markdown.ts'
import { parse } from './parse.ts'

/** A message as in "Receive messages" of DingTalk's documentation. */
const message = {
  conversationId: 'cidAsXSBLnA==',
  atUsers: [{ dingtalkId: '$:LWCP_v1:$robot' }],
  chatbotCorpId: 'ding9f',
  chatbotUserId: '$:LWCP_v1:$robot',
  msgId: 'msgLICYeHgY4JtMQw==',
  senderNick: 'Ada',
  isAdmin: true,
  senderStaffId: '16650698',
  sessionWebhookExpiredTime: 1_690_367_502_152,
  createAt: 1_690_362_101_894,
  senderCorpId: 'ding9',
  conversationType: '2',
  senderId: '$:LWCP_v1:$ada',
  conversationTitle: 'Ops',
  isInAtList: true,
  sessionWebhook: 'https://oapi.dingtalk.com/robot/sendBySession?session=76da36b4',
  text: { content: ' hello' },
  robotCode: 'dingr3xc0b',
  msgtype: 'text',
}
const more = { session: '76da36b4', untilMs: '1690367502152', staff: '16650698' }
const parsed = (changes: object) => parse({ ...message, ...changes }, { account: 'dingclient01' })
const one = (changes: object) => parsed(changes)[0]

test('a message of a group', () => {
  expect(parsed({})).toEqual([
    {
      id: 'msgLICYeHgY4JtMQw==',
      account: 'dingclient01',
      sender: '16650698',
      name: 'Ada',
      to: { to: 'group:cidAsXSBLnA==', replyTo: 'msgLICYeHgY4JtMQw==', more },
      text: 'hello',
      addressed: 'mention',
      sentAtMs: 1_690_362_101_894,
    },
  ])
})

test('a direct message is answered to its sender', () => {
  expect(one({ conversationType: '1' })?.to.to).toBe('16650698')
})

test('a sender outside of the organisation has another id, which is not a staff id', () => {
  expect(one({ senderStaffId: undefined })).toMatchObject({
    sender: '$:LWCP_v1:$ada',
    to: { more: { session: '76da36b4', untilMs: '1690367502152' } },
  })
})

test('only the session of the address in a message is kept', () => {
  for (const sessionWebhook of ['http://10.0.0.1/?session=s-1', 'https://evil.example/robot/sendBySession?session=s-1']) {
    expect(one({ sessionWebhook })?.to.more).toMatchObject({ session: 's-1' })
    expect(JSON.stringify(one({ sessionWebhook }))).not.toContain('http')
  }
  expect(one({ sessionWebhook: 'no address' })?.to.more).toEqual({ staff: '16650698' })
})

describe('content', () => {
  test.each([
    ['picture', { downloadCode: 'd1', pictureDownloadCode: 'p1' }, '', [{ kind: 'image', name: 'picture', source: { id: 'd1' } }]],
    ['picture', { pictureDownloadCode: 'p1' }, '', [{ kind: 'image', name: 'picture', source: { id: 'p1' } }]],
    [
      'file',
      { fileName: 'a.pdf', downloadCode: 'd1', spaceId: '1', fileId: '2' },
      '',
      [{ kind: 'file', name: 'a.pdf', source: { id: 'd1' } }],
    ],
    ['video', { duration: 3000, videoType: 'mp4', downloadCode: 'd1' }, '', [{ kind: 'video', name: 'video.mp4', source: { id: 'd1' } }]],
    ['audio', { duration: 4000, downloadCode: 'd1', recognition: '你好' }, '你好', undefined],
    ['audio', { duration: 4000, downloadCode: 'd1' }, '', [{ kind: 'audio', name: 'recording', source: { id: 'd1' } }]],
    [
      'richText',
      { richText: [{ text: 'look ' }, { type: 'picture', downloadCode: 'd1', pictureDownloadCode: 'p1' }, { text: 'here' }] },
      'look here',
      [{ kind: 'image', name: 'picture', source: { id: 'd1' } }],
    ],
  ])('%s %j', (msgtype, content, text, attachments) => {
    const inbound = one({ msgtype, content, text: undefined })
    expect(inbound?.text).toBe(text)
    expect(inbound?.attachments).toEqual(attachments)
  })

  test('distinguishes quoted words from the words of the sender', () => {
    const quoted = { msgId: 'm-0', msgType: 'text', content: { text: 'old\nwords' } }
    expect(one({ text: { content: 'what?', isReplyMsg: true, repliedMsg: quoted } })).toMatchObject({
      text: 'what?',
      quoted: { id: 'm-0', text: 'old\nwords' },
      inReplyTo: 'm-0',
    })
    for (const repliedMsg of [undefined, 7, { content: 7 }, { content: {} }])
      expect(one({ text: { content: 'what?', isReplyMsg: true, repliedMsg } })?.text).toBe('what?')
  })

  test.each([
    { text: { content: '  ' } },
    { msgId: '' },
    { conversationId: 7 },
    { senderId: '$:LWCP_v1:$robot' },
    { msgtype: 'picture', content: {} },
    { senderStaffId: undefined, senderId: undefined },
  ])('%j is ignored', (changes) => expect(parsed(changes)).toEqual([]))

  test('values of any other type are ignored', () => {
    for (const value of [undefined, null, 7, '', [], {}, [1], { msgtype: 'richText', content: { richText: [null, 7] } }]) {
      expect(parse(value, { account: 'a' })).toEqual([])
    }
  })
})

describe('markdown', () => {
  test('keeps line breaks outside of code, which DingTalk would join', () => {
    expect(toMarkdown('one\ntwo\n\nthree\n```\na\nb\n```\nfour')).toBe('one  \ntwo\n\nthree  \n```\na\nb\n```\nfour')
  })

  test('a title is the first line without markup, and never empty', () => {
    expect(titleOf('\n---\n## **A plan**\nmore')).toBe('A plan**')
    expect(titleOf('😀'.repeat(50))).toBe('Sluice')
    expect([...titleOf('字'.repeat(50))]).toHaveLength(40)
  })
})

test('a mention alone counts when it quotes a message, and only then', () => {
  const repliedMsg = { msgType: 'picture', msgId: 'msg0', senderId: '$:LWCP_v1:$eve', content: { downloadCode: 'code1' } }
  expect(one({ text: { content: ' ', isReplyMsg: true, repliedMsg } })).toMatchObject({
    ...{ text: '', addressed: 'mention' },
    quoted: { attachments: [{ kind: 'image', source: { id: 'code1' } }] },
  })
  expect(parsed({ text: { content: ' ' } })).toEqual([])
})
