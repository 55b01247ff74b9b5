import fc from 'fast-check'
import { expect, it } from 'vitest'
import { agentKey, agentOfSession, chatSessionKey, MAIN_AGENT, parseAgentKey, parseChatSession } from './session-key.ts'

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

it('parses each chat session into its parts, whatever they contain and whichever agent has it', () => {
  const part = fc.string({ unit: 'grapheme' })
  fc.assert(
    fc.property(name, part, part, fc.option(part, { nil: undefined }), part, (agent, account, conversation, thread, sender) => {
      const chat = { channel: 'slack', account, conversation, sender, ...(thread !== undefined && { thread }) }
      expect(parseChatSession(agentKey(agent, chatSessionKey(chat)))).toEqual(chat)
    }),
  )
})

it.each(['device/notes', 'sop:01J', 'channel:slack/T1/U1', 'channel:slack/%E0/C1/U1'])('finds no chat in %s', (session) => {
  expect(parseChatSession(session)).toBeUndefined()
})
