/** Starts fakes of the platforms with webhooks on loopback, and makes the configuration for them. */
import { BIZCHAT_TOKEN, type BizchatFake, startBizchatFake } from '@sluice/channel-bizchat/testing'
import { type ChatappFake, startChatappFake } from '@sluice/channel-chatapp/testing'
import { type MailpushFake, startMailpushFake } from '@sluice/channel-mailpush/testing'
import { type RoomchatFake, startRoomchatFake } from '@sluice/channel-roomchat/testing'
import { startTextrelayFake, TEXTRELAY_TOKEN, type TextrelayFake } from '@sluice/channel-textrelay/testing'
import type { ChannelSections } from './channel-daemon.ts'

export interface FakeProviders {
  readonly chatapp: ChatappFake
  readonly textrelay: TextrelayFake
  readonly bizchat: BizchatFake
  readonly roomchat: RoomchatFake
  readonly mailpush: MailpushFake
  /** Sections with the secrets of the reference vectors and open allowlists. */
  readonly channels: ChannelSections
  close(): Promise<void>
}

export const PUSH_URL = 'https://gw.example.com/webhook/mailpush'
export const PUSH_ACCOUNT = 'push@project.iam.example.com'

/** `nowMs` is the clock of the mailbox. */
export async function startFakeProviders(nowMs: () => number): Promise<FakeProviders> {
  const [chatapp, textrelay, bizchat, roomchat, mailpush] = await Promise.all([
    startChatappFake(),
    startTextrelayFake(),
    startBizchatFake(),
    startRoomchatFake(),
    startMailpushFake({ nowMs }),
  ])
  return {
    chatapp,
    textrelay,
    bizchat,
    roomchat,
    mailpush,
    channels: {
      chatapp: {
        access_token: chatapp.accessToken,
        phone_number_id: chatapp.phoneNumberId,
        verify_token: 'vt-01',
        app_secret: 'chatapp-app-secret-01',
        allowed_numbers: ['*'],
        api_url: chatapp.url,
      },
      textrelay: {
        api_token: TEXTRELAY_TOKEN,
        from_phone: '+15550001111',
        signing_secret: 'textrelay-signing-secret-01',
        allowed_senders: ['*'],
        api_url: textrelay.apiUrl,
      },
      bizchat: {
        api_token: BIZCHAT_TOKEN,
        api_url: bizchat.url,
        webhook_secret: 'bizchat-webhook-secret-01',
        allowed_numbers: ['*'],
      },
      roomchat: {
        base_url: roomchat.url,
        app_token: roomchat.appToken,
        webhook_secret: roomchat.secret,
        allowed_users: ['*'],
      },
      mailpush: {
        enabled: true,
        topic: 'projects/p/topics/t',
        oauth_token: 'oauth-token-01',
        webhook_secret: 'mailpush-secret-01',
        webhook_url: PUSH_URL,
        service_account: PUSH_ACCOUNT,
        allowed_senders: ['*'],
        api_url: mailpush.url,
        token_url: `${mailpush.url}/token`,
        jwks_url: `${mailpush.url}/oauth2/v3/certs`,
      },
    },
    async close() {
      await Promise.all([chatapp, textrelay, bizchat, roomchat, mailpush].map((fake) => fake.close()))
    },
  }
}
