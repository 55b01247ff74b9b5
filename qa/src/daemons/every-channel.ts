/** The program `sluice` from its sources with every channel of the catalogue, also the ones that no profile has. */
import { main } from '@sluice/cli'
import { always } from '../../../profiles/always.ts'
import { CHANNELS } from '../channels.ts'

const others = CHANNELS.map(({ feature }) => feature).filter(({ id }) => !always.some((feature) => feature.id === id))

await main({ profile: 'test', features: [...always, ...others] })
