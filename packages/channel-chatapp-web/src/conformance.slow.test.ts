import { channelConformance } from '@sluice/testkit/channel'
import { subject } from './testing/subject.ts'

channelConformance(await subject())
