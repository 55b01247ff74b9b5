/** The names by which the configuration and the API address the people who are asked or notified. */
import { ROWS } from '@sluice/sdk'

/** `dashboard`: every subscriber of events. The others are the targets of channels in the catalogue. */
export const TARGETS: readonly string[] = ['dashboard', ...ROWS.flatMap(([, { target }]) => target ?? [])]
