/** The risk of the tools of a server: as the operator says, or as the server says where the operator trusts it. */
import type { Risk } from '@sluice/sdk'
import type { ServerConfig } from './config.ts'
import type { Definition } from './definition.ts'

/** The hints of a server about its tools count only where the operator trusts the server. */
export function riskOf({ risk, default_risk, trust_hints }: ServerConfig, { name, readOnlyHint }: Definition): Risk {
  if (Object.hasOwn(risk, name)) return risk[name] ?? default_risk
  return trust_hints && readOnlyHint ? 'read' : default_risk
}
