/** The risk of the tools of a server: as the operator says, or as the server says where the operator trusts it. */
import type { Risk } from '@sluice/sdk'
import type { ServerConfig } from './config.ts'
import type { Definition } from './definition.ts'

/** What a server says about itself counts only where the operator trusts it. */
export function riskOf({ risk, default_risk, trust_hints }: ServerConfig, { name, readOnlyHint }: Definition): Risk {
  if (Object.hasOwn(risk, name)) return risk[name] ?? default_risk
  return trust_hints && readOnlyHint ? 'read' : default_risk
}
