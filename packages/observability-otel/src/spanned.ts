/** The observations that are spans. */
import type { Observation, Span } from '@sluice/sdk'

type WithSpan<Kind> = Kind extends Observation ? ('span' extends keyof Kind ? Kind & { readonly span: Span } : never) : never

export type Spanned = WithSpan<Observation>

export const isSpanned = (observation: Observation): observation is Spanned => 'span' in observation && observation.span !== undefined
