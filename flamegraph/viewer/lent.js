// @ts-check
/**
 * Numbers that are lent to one profile after the other, in a few arrays for all: what each change of scope would leave
 * behind lies in the browser's memory until it looks for it. A profile whose place was taken reads its numbers anew.
 */

import { Profile, sumUp } from "./profile.js";

/** @typedef {import("./data.js").EventInfo} EventInfo */
/** @typedef {import("./profile.js").Shape} Shape */

/**
 * Self and total of each node, and whose they are: of nobody while they are filled.
 * @typedef {{profile: LentProfile | null, self: [Float64Array], total: [Float64Array], used: number}} Place
 */

const NONE = new Float64Array(0);

/**
 * Places for profiles of one shape, 16 bytes a node each. The one that was used last is never taken: a comparison,
 * which asks for one side right after the other, looks at both at once. Nobody may look at more, or keep one of the
 * arrays beyond its turn.
 */
export class Places {
  /** @param {number} most how many, 2 or more */
  constructor(most) {
    this.most = most;
    /** @type {Place[]} */
    this.places = [];
    this.clock = 0;
  }

  /**
   * The profile's numbers, which are read where it has no place.
   * @param {LentProfile} profile
   */
  of(profile) {
    let place = this.held(profile);
    if (!place) {
      place = this.free(profile.count);
      place.profile = null;
      place.self[0].fill(0);
      profile.fill(place.self[0]);
      sumUp(profile, place.self[0], place.total[0]);
      place.profile = profile;
    }
    place.used = ++this.clock;
    return place;
  }

  /**
   * The profile's numbers where it has them.
   * @param {LentProfile} profile
   */
  held(profile) {
    return this.places.find((one) => one.profile === profile) ?? null;
  }

  /** Takes all of them away; whoever is asked for its numbers reads them anew. */
  clear() {
    this.places = [];
  }

  /**
   * A new place, or that of the profile that was not used for longest; rather one that is soon read again.
   * @param {number} count of nodes
   */
  free(count) {
    if (this.places.length < this.most) {
      /** @type {Place} */
      const place = { profile: null, self: [new Float64Array(count)], total: [new Float64Array(count)], used: 0 };
      this.places.push(place);
      return place;
    }
    const rest = this.places.sort((a, b) => a.used - b.used).slice(0, -1);
    return rest.find(({ profile }) => !profile?.long) ?? rest[0];
  }
}

export class LentProfile extends Profile {
  /**
   * @param {Shape} shape
   * @param {EventInfo} event
   * @param {Places} places
   * @param {(self: Float64Array) => void} fill adds the self value of each node to zeros
   * @param {boolean} [long] whether that takes long
   */
  constructor(shape, event, places, fill, long = false) {
    super(shape, event, NONE, NONE);
    this.places = places;
    this.fill = fill;
    this.long = long;
  }

  /** @override */
  get self() {
    return this.places.of(this).self;
  }

  /** @override */
  get total() {
    return this.places.of(this).total;
  }
}
