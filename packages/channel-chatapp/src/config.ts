/** The section `[channels_config.chatapp]`, with the keys of cloud mode. */
import { chatappKeys } from '@sluice/chatapp-common'
import { refineAllowedNumbers } from '@sluice/kit/phone-numbers'
import { headerSecret, type Refined, type Secret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const schema = v.object({
  ...chatappKeys,
  access_token: v.optional(v.pipe(headerSecret(), v.description('The token that sends messages and fetches media; cloud mode needs it'))),
  verify_token: v.optional(
    v.pipe(secretText(), v.description('The token that the platform must send in its GET check; cloud mode needs it')),
  ),
  app_secret: v.optional(
    v.pipe(
      secretText({ env: ['SVC_CHATAPP_APP_SECRET'], envWins: true }),
      v.description('The secret that verifies every request; without it requests are not verified'),
    ),
  ),
  api_url: v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:/i, 'Not an http or https URL'), v.description('Base URL of the cloud API')),
    'https://graph.facebook.com',
  ),
  api_version: v.optional(
    v.pipe(v.string(), v.regex(/^v\d+\.\d+$/, 'Not a version such as v23.0'), v.description('Version of the cloud API')),
    'v23.0',
  ),
})

export const chatappSection = { path: 'channels_config.chatapp', schema, refine } as const

export type ChatappConfig = v.InferOutput<typeof schema>

/** A section that cloud mode can use. */
export type CloudConfig = ChatappConfig & { readonly access_token: Secret; readonly verify_token: Secret }

/** The keys of which one means that cloud mode is wanted. Web mode, which is another feature, needs none of them. */
const CLOUD_KEYS = ['phone_number_id', 'access_token', 'verify_token'] as const

const isMissing = (value: unknown): boolean => value === undefined || value === ''

export const isCloud = (section: ChatappConfig): section is CloudConfig =>
  !isMissing(section.access_token) && !isMissing(section.verify_token)

async function refine(section: ChatappConfig): Promise<Refined<ChatappConfig>> {
  if (CLOUD_KEYS.every((key) => isMissing(section[key]))) return { value: section, problems: [] }
  const missing = (['access_token', 'verify_token'] as const).filter((key) => isMissing(section[key]))
  const { value, problems } = await refineAllowedNumbers(section)
  return { value, problems: [...missing.map((key) => ({ path: [key], message: 'is missing' })), ...problems] }
}
