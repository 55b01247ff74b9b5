// The entry of a bundle: answers `--version` and enables the compile cache before it loads the profile.
import { start } from '@sluice/cli/start'

await start(() => import('sluice:profile'))
