import { describe, expect, test } from 'vitest'
import { isLid, personOf, senderOf } from './jid.ts'

describe('addresses', () => {
  test.each([
    ['15550002222@s.whatsapp.net', '+15550002222'],
    ['15550002222:7@s.whatsapp.net', '+15550002222'],
    ['15550002222:99@hosted', '+15550002222'],
    ['190550002222@lid', '190550002222@lid'],
    ['190550002222:99@hosted.lid', '190550002222@lid'],
  ])('%s is the sender %s', (jid, sender) => {
    expect(senderOf(jid)).toBe(sender)
    expect(isLid(jid)).toBe(sender.endsWith('@lid'))
  })

  test.each(['15550002222@hosted.example', '15550002222@hosted@lid', 'status@broadcast', '120363@g.us', '@hosted', ''])(
    '%j is no person',
    (jid) => {
      expect(personOf(jid)).toBeUndefined()
    },
  )
})
