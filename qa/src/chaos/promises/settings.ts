/** The settings that the daemons of all plays share. */
import { UNLIMITED } from '../unlimited.ts'

export interface SettingsOptions {
  /** The address of the model server. */
  readonly modelUrl: string
  /** Further keys of `[agent]`. */
  readonly agent?: string
}

export const settings = ({ modelUrl, agent = '' }: SettingsOptions): string => `[gateway]
require_pairing = false
webhook_rate_limit_per_minute = 0

[delivery]
max_attempts = 100
max_pending = 10000

[provider]
kind = "openai"
base_url = "${modelUrl}/v1"
model = "chaos"

[agent]
max_retries = 0
max_concurrent_turns = 16
${agent}
${UNLIMITED}

[http]
allow_private = ["127.0.0.1"]

[tools.http_request]
allowed_domains = ["127.0.0.1"]

[security.policy]
level = "supervised"
auto_approve = ["http_request"]

[security.sandbox]
enabled = false
`
