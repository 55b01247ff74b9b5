/** The messages of people in the play of held work, and the refusals of the model and of the platforms that they meet. */
import type { ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'
import type { ModelRefusal } from '@sluice/testkit/model-server'

/** How the model refuses a message, as the real service does (https://platform.openai.com/docs/guides/error-codes). */
export const REFUSALS = {
  request: { status: 400, body: { error: { message: 'Invalid prompt', type: 'invalid_request_error', param: null, code: null } } },
  key: {
    status: 401,
    body: { error: { message: 'Incorrect API key provided', type: 'invalid_request_error', param: null, code: 'invalid_api_key' } },
  },
  quota: {
    status: 429,
    body: { error: { message: 'You exceeded your current quota', type: 'insufficient_quota', param: null, code: 'insufficient_quota' } },
  },
} as const satisfies Readonly<Record<string, ModelRefusal>>

export type Refusal = keyof typeof REFUSALS

/** The part of a reply that the platform refuses. */
export type Fallback = 'telegram topic' | 'telegram markup' | 'discord quote' | 'slack markup'

export interface HeldMessage {
  readonly mark: string
  readonly channel: string
  /** The id of the message in the inbox. */
  readonly id: string
  /** The conversation. */
  readonly chat: string
  readonly refusal?: Refusal
  readonly fallback?: Fallback
  /** The agent that answers. */
  readonly agent?: string
}

/** The words of each platform for a part of a reply that it does not take. */
export const PLATFORM_REFUSALS = {
  'telegram markup': {
    fault: 'status',
    status: 400,
    body: { ok: false, error_code: 400, description: 'Bad Request: ENTITY_BOUNDS_INVALID' },
  },
  'slack markup': { fault: 'status', status: 200, body: { ok: false, error: 'invalid_blocks' } },
} as const satisfies Partial<Record<Fallback, ProviderFault>>

/** Whether a request to Telegram or Slack has the markup that is refused. */
export const hasMarkup = ({ body }: ProviderRequest): boolean => /"entities":\[\{|(?:^|&)blocks=%5B%7B/.test(body.toString())
