// The bundle's entry: `--version` and the compile cache before the profile's own code is loaded.
import { start } from '@sluice/cli/start'

await start(() => import('sluice:profile'))
