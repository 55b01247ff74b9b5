/** What people can send on the platform, as webhook events of the WhatsApp Cloud API: the fixtures that hold one message. A press of a button has no words. */
import type { ArrivalSubject } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { parse } from '../parse.ts'

const DOCS = 'https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples'
const fixtures = loadFixtures(new URL('../../fixtures/', import.meta.url))

export const chatappArrivals: ArrivalSubject = {
  parse: (payload) => parse({ body: Buffer.from(JSON.stringify(payload)) }, { account: '200000000000002' }),
  never: { quoted: 'the Cloud API sends only the id of the message that is answered; the daemon adds the words that it knows' },
  recorded: fixtures.flatMap(({ name, body, expect: [message, ...others] }) =>
    message && !message.pressed && others.length === 0 ? [{ what: name, source: DOCS, payload: JSON.parse(body), expect: message }] : [],
  ),
}
