import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  agentKey,
  agentOfSession,
  chatSessionKey,
  MAIN_AGENT,
  memoryOwner,
  parseAgentKey,
  parseChatSession,
  parseRoomId,
  parseSenderKey,
  roomId,
  roomOwner,
  senderKey,
  sharedRoom,
} from './session-key.ts'

const name = fc.stringMatching(/^[a-z0-9-]{1,32}$/)

it('keeps the keys of the main agent as they were before there were others', () => {
  expect(agentKey(MAIN_AGENT, 'device/notes')).toBe('device/notes')
  expect(chatSessionKey({ channel: 'slack', account: 'T1', conversation: 'C/1', sender: 'U1' })).toBe('channel:slack/T1/C%2F1/U1')
  expect(agentOfSession(null)).toBe(MAIN_AGENT)
})

it.each(['device/notes', 'channel:slack/T1/C1/U1', 'sop:01J', 'agents/x', 'agent:', 'agent:Support/x', 'agent:support', 'agent:main/x'])(
  'reads %s as a key of the main agent',
  (key) => {
    expect(parseAgentKey(key)).toEqual({ agent: MAIN_AGENT, key })
  },
)

it('parses each key into the agent and the key that it was made from', () => {
  fc.assert(
    fc.property(name, fc.string(), (agent, key) => {
      fc.pre(agent !== MAIN_AGENT)
      expect(parseAgentKey(agentKey(agent, key))).toEqual({ agent, key })
    }),
  )
})

const part = fc.string({ unit: 'grapheme' })
const maybe = (text: fc.Arbitrary<string>) => fc.option(text, { nil: undefined })

it('parses each chat session into its parts, whatever they contain and whichever agent has it', () => {
  const sender = maybe(fc.string({ unit: 'grapheme', minLength: 1 }))
  fc.assert(
    fc.property(name, part, part, maybe(part), sender, (agent, account, conversation, thread, by) => {
      const room = { channel: 'slack', account, conversation, ...(thread !== undefined && { thread }) }
      const chat = { ...room, ...(by !== undefined && { sender: by }) }
      const session = agentKey(agent, chatSessionKey(chat))
      expect(parseChatSession(session)).toEqual(chat)
      expect(sharedRoom(session)).toEqual(by === undefined ? room : undefined)
    }),
  )
})

it('parses each sender and each room back from its key, and no two of them share one', () => {
  fc.assert(
    fc.property(name, part, part, (channel, account, other) => {
      expect(parseSenderKey(agentKey('help', senderKey(channel, { account, sender: other })))).toEqual({ channel, account, sender: other })
      expect(parseRoomId(roomId({ channel, account, conversation: other }))).toEqual({ channel, account, conversation: other })
    }),
  )
  expect(parseSenderKey('device:7')).toBeUndefined()
  expect(parseRoomId('slack/C1')).toBeUndefined()
  expect(parseRoomId('slack/T1/C1/U1')).toBeUndefined()
})

it('gives the memories of a shared session to its room and agent, and the memories of any other session to the caller', () => {
  const room = { channel: 'slack', account: 'T1', conversation: 'C/1' }
  const caller = senderKey('slack', { account: 'T1', sender: 'U1' })
  expect(roomOwner(room)).toBe('room:slack/T1/C%2F1')
  expect(memoryOwner({ session: chatSessionKey({ ...room, thread: '5' }), caller })).toBe(roomOwner(room))
  expect(memoryOwner({ session: agentKey('help', chatSessionKey(room)), caller })).toBe('agent:help/room:slack/T1/C%2F1')
  expect(memoryOwner({ session: chatSessionKey({ ...room, sender: 'U1' }), caller })).toBe(caller)
  expect(memoryOwner({ session: null, caller })).toBe(caller)
})

it.each(['device/notes', 'sop:01J', 'channel:slack/T1/U1', 'channel:slack/%E0/C1/U1'])('finds no chat in %s', (session) => {
  expect(parseChatSession(session)).toBeUndefined()
})
