// Search in Chinese. The index of mdBook divides text at spaces, so it has whole Chinese sentences as words. It also has
// the text of every section, in which a query with Chinese characters is looked up as it is written. `cargo x book`
// appends this script to the index, which a page loads when its reader first searches.

(() => {
  const CHINESE = /\p{Script=Han}/u;
  // The characters of a section that are shown around the first place of a term.
  const SHOWN = 40;

  /** Counts the places of a term. */
  const count = (text, term) => text.split(term).length - 1;

  /** Returns a copy of a section with the text around a term, which stands between spaces, so that mdBook marks it. */
  function excerpt(section, term) {
    const at = section.body.toLowerCase().indexOf(term);
    if (at < 0) return section;
    const end = at + term.length;
    const [before, after] = [section.body.slice(Math.max(0, at - SHOWN), at), section.body.slice(end, end + SHOWN)];
    return { ...section, body: `${before} ${section.body.slice(at, end)} ${after}` };
  }

  /** Returns the sections that have all terms, those with most places first; a place in a title counts for ten. */
  function find(sections, query) {
    const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const [ref, section] of Object.entries(sections)) {
      const [title, body] = [section.title.toLowerCase(), section.body.toLowerCase()];
      const counts = terms.map((term) => 10 * count(title, term) + count(body, term));
      if (counts.every(Boolean)) {
        found.push({ ref, score: counts.reduce((sum, one) => sum + one), doc: excerpt(section, terms[0]) });
      }
    }
    return found.sort((one, other) => other.score - one.score);
  }

  const { search } = elasticlunr.Index.prototype;
  elasticlunr.Index.prototype.search = function (query, options) {
    return CHINESE.test(query) ? find(this.documentStore.docs, query) : search.call(this, query, options);
  };
})();
