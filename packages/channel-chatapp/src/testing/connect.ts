/** Connects the channel to its fake. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { type ChatappFake, startChatappFake } from './fake.ts'
import { CHATAPP_SECRET } from './vectors.ts'

export async function connect(): Promise<Connected<ChatappFake>> {
  const fake = await startChatappFake()
  const section = {
    access_token: fake.accessToken,
    phone_number_id: fake.phoneNumberId,
    verify_token: 'vt-01',
    app_secret: CHATAPP_SECRET,
    allowed_numbers: ['*'],
    api_url: fake.url,
  }
  return { fake, section }
}
